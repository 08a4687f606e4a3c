"""Renders a recipe for linux-64 with rattler-build, offline: conda.py RECIPE SCRIPT

Prints what is rendered, as JSON, and writes the build script to SCRIPT.
"""

import json
import sys
from pathlib import Path

from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe, VariantConfig

path, script = sys.argv[1:]
config = RenderConfig(platform=PlatformConfig(target_platform="linux-64"))
(variant,) = Stage0Recipe.from_file(path).render(VariantConfig(), config)
package = variant.recipe.to_dict()
print(json.dumps(package))
Path(script).write_text("\n".join(["set -eu", *package["build"]["script"], ""]))
