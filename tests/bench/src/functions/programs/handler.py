def handler(output, expected):
    return {"score": 1 if expected in output else 0, "metadata": {"words": len(output.split(" "))}}
