#!/usr/bin/env python3
"""The Model Context Protocol, message by message: over HTTP, and over standard input and output."""
import json
import os
import subprocess
import unittest

from serving import DOCUMENTS, FOLDER, GPUIDX, Server, build, main, query

LONG = [{'id': 'long', 'title': 'A "long" title', 'year': 1, 'kind': 'long', 'tenant': 'a',
         'text': ' '.join('w\u00f6rd%d "quoted" \\ \U0001f600 line\n' % i for i in range(2000))},
        {'id': 'i' * 300, 'text': 'an identifier of many characters', 'tenant': 'b'}]


def message(method, params=None, i=1):
    m = {'jsonrpc': '2.0', 'id': i, 'method': method}
    return m if params is None else {**m, 'params': params}


def call(name, **arguments):
    return message('tools/call', {'name': name, 'arguments': arguments})


class Http:
    """Messages to a server."""

    def __init__(self, test, *flags, path='/mcp', token=None, indexes=()):
        self.server, self.path, self.token = Server(*indexes, '--engine=cpu', *flags), path, token
        test.addCleanup(self.server.stop)

    def send(self, m, status=200):
        headers = {'Accept': 'application/json, text/event-stream'}
        if self.token:
            headers['Authorization'] = 'Bearer ' + self.token
        a = self.server.post(self.path, m, headers=headers)
        assert a.status == status, (a.status, a.body)
        return a.json if a.body else None


class Stdio:
    """Messages to a process, one a line."""

    def __init__(self, test, *flags, indexes=()):
        self.process = subprocess.Popen([GPUIDX, 'mcp', *indexes, '--engine=cpu', *flags], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        test.addCleanup(self.close)

    def close(self):
        self.process.stdin.close()
        self.code = self.process.wait(60)
        self.process.stdout.close()

    def send(self, m, status=200):
        self.process.stdin.write((m if isinstance(m, str) else json.dumps(m)) + '\n')
        self.process.stdin.flush()
        return None if status == 202 else json.loads(self.process.stdout.readline())


class Mcp(unittest.TestCase):
    def both(self, *flags, indexes=None):
        self.path = build('mcp', DOCUMENTS + LONG)
        indexes = indexes or ['docs=' + self.path]
        return [Http(self, *flags, indexes=indexes), Stdio(self, *flags, indexes=indexes)]

    def tool(self, c, name, budget=8000, **arguments):
        """The object that a tool answers; its text has at most that many characters."""
        a = c.send(call(name, **arguments))['result']
        self.assertFalse(a['isError'], a)
        text = a['content'][0]['text']
        self.assertLessEqual(len(text), budget)
        return json.loads(text)

    def refused(self, c, name, **arguments):
        a = c.send(call(name, **arguments))['result']
        self.assertTrue(a['isError'], a)
        return a['content'][0]['text']

    def test_the_handshake(self):
        for c in self.both():
            for asked, got in [('2025-06-18', '2025-06-18'), ('2024-11-05', '2024-11-05'),
                               ('1999-01-01', '2025-11-25')]:
                a = c.send(message('initialize', {'protocolVersion': asked, 'capabilities': {},
                                                  'clientInfo': {'name': 't', 'version': '1'}}, 'x'))
                self.assertEqual((a['id'], a['result']['protocolVersion']), ('x', got))
                self.assertEqual(a['result']['capabilities'], {'tools': {}})
            self.assertIsNone(c.send({'jsonrpc': '2.0', 'method': 'notifications/initialized'}, 202))
            self.assertIsNone(c.send({'jsonrpc': '2.0', 'id': 7, 'result': {}}, 202))
            self.assertEqual(c.send(message('ping'))['result'], {})
            tools = c.send(message('tools/list'))['result']['tools']
            self.assertEqual([t['name'] for t in tools], ['search', 'fetch'])
            self.assertEqual(tools[0]['inputSchema']['properties']['index']['enum'], ['docs'])
            self.assertIn('year (int)', tools[0]['inputSchema']['properties']['filter']['description'])

    def test_what_is_no_message_is_refused(self):
        for c in self.both():
            for m, code, status in [('{"jsonrpc"', -32700, 400), ([], -32600, 400), ([message('ping')], -32600, 400),
                                    ({'jsonrpc': '1.0', 'id': 1, 'method': 'ping'}, -32600, 400),
                                    ({'id': 1, 'method': 'ping'}, -32600, 400), ({'jsonrpc': '2.0', 'id': 1}, -32600,
                                                                                 400),
                                    ({'jsonrpc': '2.0', 'id': [], 'method': 'ping'}, -32600, 400),
                                    ({'jsonrpc': '2.0', 'id': 1, 'method': 3}, -32600, 400),
                                    ({'jsonrpc': '2.0', 'id': 1, 'method': 'ping', 'more': 3}, -32600, 400),
                                    (message('ping', []), -32600, 400), (message('resources/list'), -32601, 200),
                                    (message('server/discover', {}), -32601, 200),
                                    (message('tools/call', {}), -32602, 200),
                                    (message('tools/call', {'name': 'write'}), -32602, 200)]:
                a = c.send(m, status)
                self.assertEqual(a['error']['code'], code, m)
        self.assertEqual(Http(self, indexes=['docs=' + self.path]).server.get('/mcp').status, 405)

    def test_a_search_finds_what_query_finds(self):
        for c in self.both():
            for text in ['inverted index', 'all terms', 'zebra', 'gr\u00fc\u00dfe', 'alert(1)']:
                a = self.tool(c, 'search', query=text)
                theirs = query(self.path, text)['hits']
                self.assertEqual([(r['id'], r['score']) for r in a['results']], [(h['id'], h['score']) for h in theirs])
            a = self.tool(c, 'search', query='terms', k=2)
            self.assertEqual((len(a['results']), a['next_offset']), (2, 2))
            rest = self.tool(c, 'search', query='terms', k=50, offset=2)
            self.assertEqual([r['id'] for r in a['results'] + rest['results']],
                             [h['id'] for h in query(self.path, 'terms', '-k', '100')['hits']])
            self.assertNotIn('next_offset', rest)
            found = self.tool(c, 'search', query='terms', filter='kind:odd AND year:>2005')['results']
            self.assertEqual({r['id'] for r in found}, {'d07', 'd09'})
            self.assertEqual(found[0]['title'], DOCUMENTS[int(found[0]['id'][1:])]['title'])

    def test_pages_keep_to_the_budget_and_miss_nothing(self):
        for c in self.both('--max-chars=3000'):
            want = [h['id'] for h in query(self.path, 'terms index documents identifier', '-k', '100')['hits']]
            for budget in [300, 500, 900, 3000]:
                got, offset = [], 0
                while offset is not None:
                    arguments = {'query': 'terms index documents identifier', 'k': 20, 'offset': offset}
                    try:
                        a = self.tool(c, 'search', budget, max_chars=budget, **arguments)
                    except AssertionError:
                        self.assertIn('max_chars', self.refused(c, 'search', max_chars=budget, **arguments))
                        self.assertEqual((budget, want[len(got)]), (300, 'i' * 300))  # whose id alone is as long
                        got.append('i' * 300)
                        offset += 1
                        continue
                    self.assertTrue(a['results'])
                    got += [r['id'] for r in a['results']]
                    offset = a.get('next_offset')
                self.assertEqual(got, want)
            for budget in [300, 777, 3000]:
                text, offset = '', 0
                while offset is not None:
                    a = self.tool(c, 'fetch', budget, id='long', offset=offset, max_chars=budget)
                    self.assertEqual((a['offset'], a['length']), (offset, len(LONG[0]['text'])))
                    text += a['text']
                    offset = a.get('next_offset')
                    if len(text) < 5 * budget or offset is None:
                        continue
                    self.assertEqual(offset, len(text))
                    offset = max(offset, a['length'] - 2000)  # enough of the middle
                    text = LONG[0]['text'][:offset]
                self.assertEqual(text, LONG[0]['text'])

    def test_a_document_is_read(self):
        for c in self.both():
            a = self.tool(c, 'fetch', id='d04')
            self.assertEqual((a['id'], a['title'], a['text']), ('d04', 'Title 4', DOCUMENTS[4]['text']))
            self.assertEqual(a['metadata'], {'year': 2004, 'kind': 'even', 'tenant': 'a'})
            self.assertEqual(self.tool(c, 'fetch', id='d04', offset=10**6)['text'], '')
            self.assertIn("'none'", self.refused(c, 'fetch', id='none'))

    def test_faults_name_the_argument(self):
        for c in self.both():
            for name, arguments, words in [
                    ('search', {}, "'query' is missing"), ('search', {'query': 1}, 'query: '),
                    ('search', {'query': 'x', 'k': 0}, 'k: '), ('search', {'query': 'x', 'k': 101}, 'k: '),
                    ('search', {'query': 'x', 'filter': 'nope:1'}, 'filter: '), ('search', {'query': 'x', 'q': 1},
                                                                                 "'q'"),
                    ('search', {'query': 'x', 'index': 'other'}, "'other'"), ('fetch', {}, "'id' is missing"),
                    ('search', {'query': 'x', 'max_chars': 10}, 'max_chars: '), ('fetch', {'id': 'd01', 'k': 2}, "'k'"),
                    ('search', {'query': 'x', 'max_chars': 10**6}, 'max_chars: '),
                    ('search', {'query': 'x', 'offset': 20000}, 'offset'), ('fetch', {'id': 'd01', 'offset': -1},
                                                                            'offset')]:
                self.assertIn(words, self.refused(c, name, **arguments))
            a = c.send(message('tools/call', {'name': 'search'}))['result']
            self.assertTrue(a['isError'])
            self.assertIn('arguments', a['content'][0]['text'])

    def test_several_indexes(self):
        docs, other = build('mcp', DOCUMENTS + LONG), build('other', [{'id': 'o1', 'text': 'terms elsewhere'}])
        for c in self.both(indexes=['docs=' + docs, 'other=' + other]):
            self.assertEqual([r['id'] for r in self.tool(c, 'search', query='terms', index='other')['results']], ['o1'])
            self.assertEqual(self.tool(c, 'fetch', id='o1', index='other')['text'], 'terms elsewhere')
        c = Http(self, indexes=['docs=' + docs, 'other=' + other], path='/mcp/other')
        self.assertEqual([r['id'] for r in self.tool(c, 'search', query='terms')['results']], ['o1'])
        self.assertIn('docs', self.refused(c, 'search', query='terms', index='docs') + 'docs')
        tools = c.send(message('tools/list'))['result']['tools']
        self.assertEqual(tools[0]['inputSchema']['properties']['index']['enum'], ['other'])
        c.path = '/mcp/nowhere'
        self.assertIn('error', c.send(message('ping'), 404))

    def test_filters_of_tokens_hold(self):
        path = os.path.join(FOLDER, 'mcp-tokens.json')
        with open(path, 'w', encoding='utf-8') as f:
            json.dump({'tokens': [{'name': 'a', 'token': 'the-token-of-tenant-a', 'filter': 'tenant:a',
                                   'indexes': ['docs']}]}, f)
        docs = build('mcp', DOCUMENTS + LONG)
        indexes = ['other=' + build('other', [{'id': 'o1', 'text': 'x'}]), 'docs=' + docs]
        own = {d['id'] for d in DOCUMENTS + LONG if d['tenant'] == 'a'}
        clients = [Http(self, '--tokens=' + path, indexes=indexes, token='the-token-of-tenant-a'),
                   Stdio(self, '--filter=tenant:a', indexes=['docs=' + docs])]
        for c in clients:
            for more in [{}, {'filter': 'tenant:b OR year:>0'}, {'filter': 'tenant:b'}]:
                found = self.tool(c, 'search', query='terms index documents queries identifier', k=100,
                                  **more)['results']
                self.assertLessEqual({r['id'] for r in found}, own)
            for d in DOCUMENTS + LONG:
                if d['id'] in own:
                    self.assertEqual(self.tool(c, 'fetch', id=d['id'])['id'], d['id'])
                else:
                    self.assertIn('no document', self.refused(c, 'fetch', id=d['id']))
        self.assertIn('no access', self.refused(clients[0], 'search', query='x', index='other'))
        tools = clients[0].send(message('tools/list'))['result']['tools']
        enum = tools[0]['inputSchema']['properties']['index']['enum']
        self.assertEqual(enum, ['docs'])
        clients[0].token = 'wrong'
        self.assertIn('error', clients[0].send(message('ping'), 401))
        p = subprocess.run([GPUIDX, 'mcp', 'd=' + docs, '--filter=nope:1'], capture_output=True, text=True, timeout=60,
                           input='')
        self.assertEqual(p.returncode, 2)
        self.assertIn('--filter', p.stderr)

    def test_the_process_ends_with_its_input(self):
        c = Stdio(self, indexes=[build()])
        c.process.stdin.write('\n  \n' + json.dumps(call('search', query='terms', k=1)))  # without an end of line
        c.close()
        self.assertEqual(c.code, 0)


if __name__ == '__main__':
    main()
