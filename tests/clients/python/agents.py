"""The MCP library of Python as a coding agent: lists and calls every tool, with a key, with OAuth, and without rights.

Arguments: how to authenticate (key, oauth or refused), the protocol mode of the library, and a file with the calls.
"""

import asyncio
import json
import os
import re
import sys
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
from mcp.client import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

RESULT_BYTES_MAX = 256 << 10
BACK = "http://127.0.0.1:49998/agent"

way, mode, place = sys.argv[1:4]
url, key = os.environ["MCP_URL"], os.environ.get("MCP_KEY")
with open(place) as file:
    wanted = json.load(file)


def check(what, holds, told=""):
    if not holds:
        sys.exit(f"{what}: {told}")


class Kept:
    """Tokens and registration of one process."""

    def __init__(self):
        self.tokens = self.client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class Browser:
    """A person who logs in at the provider, reads the page of the server, and allows access."""

    def __init__(self):
        self.answer = None

    async def visit(self, address):
        async with httpx2.AsyncClient() as browser:
            for _ in range(2):
                answer = await browser.get(address)
                check("a redirect", answer.status_code == 302, answer.text)
                address = answer.headers["location"]
            asked = await browser.get(address)
            check("a page that asks", asked.status_code == 200 and "requests access" in asked.text, asked.text)
            check("the page names the program", "Agent of Python" in asked.text, asked.text)
            check("the page names the address", "127.0.0.1:49998" in asked.text, asked.text)
            ticket = re.search('name="answer" value="([^"]+)"', asked.text).group(1)
            origin = urlsplit(address)
            allow = f"{origin.scheme}://{origin.netloc}/oauth/invitations"
            form = {"content-type": "application/x-www-form-urlencoded"}
            allowed = await browser.post(allow, content=urlencode({"answer": ticket}), headers=form)
            check("access is allowed", allowed.status_code == 302, allowed.text)
            back = allowed.headers["location"]
            check("the way back", back.startswith(BACK + "?"), back)
            self.answer = {name: values[0] for name, values in parse_qs(urlsplit(back).query).items()}

    async def came_back(self):
        answer = self.answer
        return AuthorizationCodeResult(code=answer["code"], state=answer["state"], iss=answer["iss"])


def client_of():
    if way == "oauth":
        browser = Browser()
        metadata = OAuthClientMetadata(client_name="Agent of Python", redirect_uris=[BACK])
        auth = OAuthClientProvider(url, metadata, Kept(), browser.visit, browser.came_back)
        return create_mcp_http_client(auth=auth)
    return create_mcp_http_client(headers={"authorization": f"Bearer {key}"})


def text_of(result):
    return json.dumps(result.model_dump(mode="json", by_alias=True), ensure_ascii=False)


async def all_tools(client):
    tools, cursor = [], None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            return tools


async def main():
    async with client_of() as http, Client(streamable_http_client(url, http_client=http), mode=mode) as client:
        tools = await all_tools(client)
        check("the tools", [tool.name for tool in tools] == wanted["tools"], [tool.name for tool in tools])
        check("what they take", all(tool.input_schema["type"] == "object" for tool in tools))
        check("they only read", all(tool.annotations.read_only_hint for tool in tools))
        check("the server", client.server_info is None or client.server_info.name == "assay", client.server_info)
        check("what it says of itself", "read-only" in (client.instructions or ""), client.instructions)
        for call in wanted["calls"]:
            # The library checks the result against the schema of the tool.
            result = await client.call_tool(call["tool"], call["arguments"])
            told = text_of(result)
            check(f"{call['tool']}: its size", len(told.encode()) <= RESULT_BYTES_MAX, len(told))
            if way == "refused" and not call["is_public"]:
                found = [text for text in wanted["hidden"] if text in told]
                check(f"{call['tool']}: nothing is shown", found == [], f"{found}: {told}")
            else:
                check(f"{call['tool']}: it works", not result.is_error, told)
                check(f"{call['tool']}: its answer", call["text"] in told.replace('\\"', '"'), told)
        wrong = await client.call_tool("sql_query", {"query": "SELECT nonsense FROM"})
        check("a wrong query", wrong.is_error, wrong)
        print(f"{len(wanted['calls'])} calls, protocol {client.protocol_version}")


asyncio.run(main())
