# Answers one line with another: the least that a warm interpreter does for a call.
import json
import sys

for line in sys.stdin:
    print(json.dumps(handler(**json.loads(line))), flush=True)
