"""A script that does not import torch: xmem reports it."""
# /// xmem
# exit = 3
# trace = "none"
# stdout = ["no torch here"]
# stderr = ["torch"]
# ///
print("no torch here")
