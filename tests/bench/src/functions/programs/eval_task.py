def handler(input):
    return " ".join(reversed(input.split()))
