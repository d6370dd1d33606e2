"""Writes random requests with the signatures that botocore 1.44 makes of them, and an assertion that google-auth signs.

Usage: aws_signatures.py COUNT SEED > signatures.json
       aws_signatures.py assertion > assertion.json
"""

import datetime
import json
import random
import sys
from unittest import mock

PATHS = ["", "/", "/model/anthropic.claude-v2%3A1/converse", "/model/a.b%3A0/converse-stream", "/a//b/../c/./d/"]
PATHS += ["/%E1%88%B4", "/a b", "/~user/x_y-z.w", "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ax%2Fy/invoke", "/..", "/a/.."]
QUERIES = ["", "Param2=value2&Param1=value1", "a=2&a=1", "flag", "x=%20%2F&X=1", "b=&a", "Action=List&Version=2010-05-08"]
HOSTS = ["bedrock-runtime.us-east-1.amazonaws.com", "Example.COM:443", "localhost:8080", "vpce-1.bedrock.vpce.amazonaws.com"]
HEADERS = [("Content-Type", "application/json"), ("accept", "  a   b "), ("X-Amzn-Bedrock-Trace", "ENABLED")]
HEADERS += [("User-Agent", "sdk"), ("traceparent", "00-1"), ("My-Header", "a, b ,c"), ("X-Empty", ""), ("Host", "other")]
BODIES = ["", "{}", '{"messages":[]}', "gr\u00fc\u00dfe", "x" * 1000]
SERVICES = ["bedrock", "sts", "service"]
REGIONS = ["us-east-1", "eu-central-1", "cn-north-1"]


def case(rng):
    from botocore import auth, awsrequest, credentials

    scheme = rng.choice(["https", "https", "http"])
    query = rng.choice(QUERIES)
    url = f"{scheme}://{rng.choice(HOSTS)}{rng.choice(PATHS)}" + (f"?{query}" if query else "")
    headers = [list(pair) for pair in rng.sample(HEADERS, rng.randrange(5))]
    body = rng.choice(BODIES)
    time = datetime.datetime(2015, 8, 30, 12, 36) + datetime.timedelta(seconds=rng.randrange(10**9))
    key = ("AKID" + str(rng.randrange(10**6)), "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", rng.choice([None, "to/ken+=="]))
    region, service = rng.choice(REGIONS), rng.choice(SERVICES)
    request = awsrequest.AWSRequest(method=rng.choice(["GET", "POST"]), url=url, data=body.encode())
    for name, value in headers:
        request.headers.add_header(name, value)
    with mock.patch.object(auth, "get_current_datetime", lambda: time):
        auth.SigV4Auth(credentials.Credentials(*key), service, region).add_auth(request)
    millis = int(time.replace(tzinfo=datetime.timezone.utc).timestamp() * 1000)
    return {
        "method": request.method,
        "url": url,
        "headers": headers,
        "body": body,
        "now_ms": millis,
        "access_key_id": key[0],
        "secret_access_key": key[1],
        "session_token": key[2],
        "region": region,
        "service": service,
        "authorization": request.headers["Authorization"],
    }


def assertion():
    """An assertion with the members in our order, signed with a new key by google-auth, which also checks it."""
    import base64

    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
    from google.auth import crypt

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    pkcs1 = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    header = {"alg": "RS256", "typ": "JWT", "kid": "key-1"}
    claims = {
        "iss": "a@p.iam.gserviceaccount.com",
        "scope": "https://www.googleapis.com/auth/cloud-platform",
        "aud": "https://oauth2.googleapis.com/token",
        "iat": 1_700_000_000,
        "exp": 1_700_003_600,
    }

    def encoded(content):
        return base64.urlsafe_b64encode(content).rstrip(b"=")

    signed = b".".join(encoded(json.dumps(part, separators=(",", ":")).encode()) for part in (header, claims))
    signature = crypt.RSASigner.from_string(pem, "key-1").sign(signed)
    assert crypt.verify_signature(signed, signature, public)
    return {"private_key": pem, "pkcs1": pkcs1, "assertion": (signed + b"." + encoded(signature)).decode()}


if sys.argv[1] == "assertion":
    print(json.dumps(assertion(), indent=1))
else:
    rng = random.Random(int(sys.argv[2]))
    print(json.dumps([case(rng) for _ in range(int(sys.argv[1]))], indent=1))
