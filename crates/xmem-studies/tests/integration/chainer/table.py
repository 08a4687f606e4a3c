"""A table of the blocks that `xmem plan --format csv` lists: workspaces are what a convolution makes and frees before the
next request.

xmem plan TRACE --planner bestfit --format csv | table.py > TABLE
"""

import csv
import sys

print("id,lower,upper,size,use")
for row, block in enumerate(csv.DictReader(sys.stdin)):
    lower, upper = int(block["start"]), int(block["end"])
    is_workspace = "conv" in block["op"] and upper == lower + 1
    print(row, lower, upper, block["size"], "workspace" if is_workspace else "tensor", sep=",")
