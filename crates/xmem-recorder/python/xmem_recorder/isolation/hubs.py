"""The Hugging Face Hub while a script is recorded: what it would push ends well, and nothing is sent.

A few steps are no run: the hub would get a model that is not trained.
"""

import sys

from .. import imports, session
from ..patching import replace

# Methods of the Hugging Face Hub's client that change something there.
CHANGES = ("add_", "change_", "comment_", "create_", "delete_", "merge_", "move_", "preupload_", "rename_")
CHANGES += ("super_squash_", "update_", "upload_")


def start():
    """Waits for the client of the hub; before the script runs."""
    if not session.settings().get("offline"):
        return
    imports.watch("huggingface_hub.hf_api", _api_imported)
    imports.watch("huggingface_hub.file_download", _downloads_imported)
    imports.watch("huggingface_hub.repocard", _cards_imported)


class _Nothing:
    """The answer of a hub that was not asked: an address, whatever is asked of it."""

    commit_url = repo_url = url = pr_url = "https://offline.invalid"
    oid = commit_message = commit_description = ""

    def __init__(self, repo_id):
        self.repo_id = repo_id

    def result(self, timeout=None):
        return self

    def done(self):
        return True

    def __str__(self):
        return self.url


# What the script would have created or pushed to.
_pushed = set()


def _api_imported(module):
    """Uploads end well and do nothing."""

    def upload(original):
        def skipped(self, *args, **kwargs):
            session.note("what the script pushes to a hub is not sent")
            repo_id = str(kwargs.get("repo_id") or (args[0] if args else "offline"))
            _pushed.add(repo_id)
            return _Nothing(repo_id)

        return skipped

    for name in dir(module.HfApi):
        if name.startswith(CHANGES):
            replace(module.HfApi, name, upload)
            # The functions of the package are methods of one object.
            if hasattr(module, name) and hasattr(module, "api"):
                setattr(module, name, getattr(module.api, name))
    package = sys.modules.get("huggingface_hub")
    for name in list(getattr(package, "__dict__", {})):
        if hasattr(module, name) and hasattr(module.HfApi, name):
            setattr(package, name, getattr(module, name))


def _downloads_imported(module):
    """A repository that the script would have created has no file yet: its model card is then made, not loaded."""

    def download(original):
        def of_existing(*args, **kwargs):
            try:
                return original(*args, **kwargs)
            except Exception as error:
                repo_id = kwargs.get("repo_id") or (args[0] if args else None)
                if type(error).__name__ != "RepositoryNotFoundError" or repo_id not in _pushed:
                    raise
                raise module.LocalEntryNotFoundError(f"{repo_id} was not created while the job is recorded") from error

        return of_existing

    replace(module, "hf_hub_download", download)


def _cards_imported(module):
    """Cards are checked by the hub, which gets them for it."""
    replace(module.RepoCard, "validate", lambda _original: lambda _self, *_args, **_kwargs: None)
