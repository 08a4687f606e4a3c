"""A script that never imports torch: nothing can be recorded, and xmem says so."""
# /// xmem
# exit = 3
# trace = "none"
# stdout = ["no torch here"]
# stderr = ["torch"]
# ///
print("no torch here")
