# Answers its whole input: a call whose interpreter was started for it.
import json
import sys

print(json.dumps(handler(**json.load(sys.stdin))))
