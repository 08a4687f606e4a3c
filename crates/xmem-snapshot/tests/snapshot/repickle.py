"""Pickles a snapshot again, with every protocol that a snapshot may have.

Writes `FILE.2` and so on, and prints the numbers.
"""

import pickle
import sys

with open(sys.argv[1], "rb") as file:
    snapshot = pickle.load(file)
for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
    with open(f"{sys.argv[1]}.{protocol}", "wb") as file:
        pickle.dump(snapshot, file, protocol=protocol)
    print(protocol)
