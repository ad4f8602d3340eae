#!/usr/bin/env python3
"""The client of the Model Context Protocol that PyPI has, unmodified."""
import asyncio
import json
import unittest

from serving import DOCUMENTS, GPUIDX, Server, build, main, need

need('mcp')

import mcp  # noqa: E402
from mcp.client.stdio import StdioServerParameters  # noqa: E402


class Client(unittest.TestCase):
    async def use(self, server):
        async with mcp.Client(server) as c:
            tools = (await c.list_tools()).tools
            self.assertEqual([t.name for t in tools], ['search', 'fetch'])
            a = await c.call_tool('search', {'query': 'inverted index', 'k': 3})
            self.assertFalse(a.is_error)
            found = json.loads(a.content[0].text)['results']
            self.assertIn(found[0]['id'], ['d00', 'd01'])
            a = await c.call_tool('fetch', {'id': found[0]['id']})
            self.assertEqual(json.loads(a.content[0].text)['text'], DOCUMENTS[int(found[0]['id'][1:])]['text'])
            a = await c.call_tool('fetch', {'id': 'none'})
            self.assertTrue(a.is_error)

    def test_over_http(self):
        with Server('docs=' + build(), '--engine=cpu') as s:
            asyncio.run(self.use('http://127.0.0.1:%d/mcp' % s.port))

    def test_over_standard_input_and_output(self):
        asyncio.run(self.use(StdioServerParameters(command=GPUIDX, args=['mcp', build(), '--engine=cpu'])))


if __name__ == '__main__':
    main()
