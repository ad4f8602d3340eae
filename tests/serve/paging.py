#!/usr/bin/env python3
"""The http-json backend of agent frameworks (its answers are held to pi-serini's schemas); OpenAI's vector stores."""
import json
import os
import time
import unittest

from serving import DOCUMENTS, FOLDER, Server, build, main, query, run

LINES = [{'id': 'lines', 'title': 'Lines', 'text': ''.join('line %d of many\n' % i for i in range(1, 451)) + 'the end',
          'tenant': 'a'},
         {'id': 'empty', 'text': '', 'tenant': 'a'}, {'id': 'closed', 'text': 'one\ntwo\n', 'tenant': 'b'}]
MANY = [{'id': 'm%03d' % i, 'text': 'yak ' * (i % 7 + 1) + 'word%d' % i, 'tenant': 'ab'[i % 2]} for i in range(120)]

TIMING = {'request': (float, True)}
HIT = {'docid': (str, True), 'score': ((int, float), True), 'title': (str, False), 'snippet': (str, False),
       'snippetTruncated': (bool, False)}
PAGE = {'hits': (list, True), 'hasMore': (bool, True), 'totalHits': (int, False), 'nextOffset': (int, False),
        'timingMs': (dict, False)}
MISSING = {'found': (bool, True), 'docid': (str, True), 'timingMs': (dict, False)}
DOCUMENT = {**MISSING, 'text': (str, True), 'title': (str, False), 'offset': (int, True), 'limit': (int, True),
            'totalUnits': (int, False), 'returnedOffsetStart': (int, False), 'returnedOffsetEnd': (int, False),
            'truncated': (bool, True), 'nextOffset': (int, False)}


def check(value, schema):
    """No member but those of the schema, each of its type, and all that must be there."""
    for name, member in value.items():
        assert isinstance(member, schema[name][0]), (name, member)
    assert all(name in value for name, (_, needed) in schema.items() if needed), value


class Paging(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.path = build('paging', DOCUMENTS + LINES + MANY)
        tokens = {'tokens': [{'name': n, 'token': 'the-token-of-%s-who-asks' % n, **more} for n, more in
                             [('all', {}), ('also', {}), ('a', {'filter': 'tenant:a'})]]}
        file = os.path.join(FOLDER, 'paging-tokens.json')
        with open(file, 'w', encoding='utf-8') as f:
            json.dump(tokens, f)
        cls.server = Server('docs=' + cls.path, '--engine=cpu', '--window=100', '--windows=3', '--tokens=' + file)

    @classmethod
    def tearDownClass(cls):
        if cls.server.stop() != 0:
            raise AssertionError(''.join(cls.server.words))

    def ask(self, path, body, status=200, who='all', server=None):
        a = (server or self.server).post(path, body,
                                         headers={'Authorization': 'Bearer the-token-of-%s-who-asks' % who})
        self.assertEqual(a.status, status, a.body)
        return a.json

    def page(self, status=200, who='all', **body):
        a = self.ask('/agents/docs/search', body, status, who)
        if status == 200:
            check(a, {**PAGE, 'window': (str, False)} if body.get('window') else PAGE)
            [check(h, HIT) for h in a['hits']]
            check(a['timingMs'], TIMING)
        return a

    def searched(self):
        a = self.server.get('/metrics', headers={'Authorization': 'Bearer the-token-of-all-who-asks'}).body.decode()
        return int(a.split('gpuidx_answers_total{index="docs",processor="cpu"} ')[1].split()[0])

    def test_pages_are_those_of_one_search(self):
        want = [(h['id'], h['score']) for h in query(self.path, 'yak', '-k', '100')['hits']]
        for limit in [1, 7, 50, 1000]:
            got, offset = [], 1
            before = self.searched()
            while offset:
                a = self.page(query='yak', limit=limit, offset=offset)
                got += [(h['docid'], h['score']) for h in a['hits']]
                self.assertEqual(a['hasMore'], 'nextOffset' in a)
                self.assertNotIn('totalHits', a)  # the window is full: there may be more
                offset = a.get('nextOffset')
            self.assertEqual(got, want)
            self.assertLessEqual(self.searched() - before, 1)
        a = self.page(query='terms', limit=100)
        self.assertEqual((a['totalHits'], a['hasMore']), (len(a['hits']), False))
        self.assertEqual(self.page(query='terms', limit=5, offset=1000)['hits'], [])
        self.assertEqual(self.page(query='zebra', limit=5)['totalHits'], 0)
        hit = self.page(query='compression', limit=1)['hits'][0]
        self.assertEqual((hit['title'], hit['snippet'], hit['snippetTruncated']),
                         ('Title 1', DOCUMENTS[1]['text'], False))

    def test_windows_have_ids(self):
        a = self.page(query='yak', limit=3, window=True)
        b = self.page(window=a['window'], offset=4, limit=3)
        self.assertEqual([h['docid'] for h in a['hits'] + b['hits']],
                         [h['docid'] for h in self.page(query='yak', limit=6)['hits']])
        self.page(404, 'also', window=a['window'])  # it is another's
        self.page(404, window='0' * 22)
        for q in ['terms', 'index', 'documents']:  # three others
            self.page(query=q, limit=1)
        self.page(404, window=a['window'])

    def test_a_tokens_filter_holds(self):
        own = {d['id'] for d in DOCUMENTS + LINES + MANY if d['tenant'] == 'a'}
        for more in [{}, {'filter': 'tenant:b OR tenant:a'}, {'filter': 'tenant:b'}]:
            for q in ['yak', 'terms']:
                self.page(query=q, limit=5)  # of another
                self.assertLessEqual({h['docid'] for h in self.page(who='a', query=q, limit=100, **more)['hits']}, own)
        self.assertFalse(self.read(who='a', docid='closed')['found'])
        self.assertTrue(self.read(who='a', docid='lines')['found'])
        found = self.ask('/v1/vector_stores/docs/search', {'query': 'yak', 'max_num_results': 50}, who='a')['data']
        self.assertLessEqual({d['file_id'] for d in found}, own)

    def read(self, status=200, who='all', **body):
        a = self.ask('/agents/docs/read', body, status, who)
        if status == 200:
            check(a, DOCUMENT if a['found'] else MISSING)
        return a

    def test_documents_are_read_by_lines(self):
        a = self.read(docid='lines')
        self.assertEqual((a['title'], a['offset'], a['limit'], a['totalUnits'], a['nextOffset'], a['truncated']),
                         ('Lines', 1, 200, 451, 201, True))
        for limit in [1, 100, 450, 451, 1000]:
            lines, offset = [], 1
            while offset:
                a = self.read(docid='lines', offset=offset, limit=limit)
                self.assertEqual(a['returnedOffsetStart'], offset)
                lines += a['text'].split('\n')
                self.assertEqual(a['returnedOffsetEnd'], len(lines))
                offset = a.get('nextOffset')
            self.assertEqual('\n'.join(lines), LINES[0]['text'])
        a = self.read(docid='lines', offset=452)
        self.assertEqual((a['text'], a['truncated']), ('', False))
        self.assertEqual(self.read(docid='empty')['totalUnits'], 0)
        a = self.read(docid='closed')
        self.assertEqual((a['text'], a['totalUnits'], a['truncated']), ('one\ntwo\n', 2, False))
        self.assertFalse(self.read(docid='none')['found'])

    def test_faults_have_their_place(self):
        for body, member in [({'query': ''}, 'query'), ({'query': 'x', 'offset': 0}, 'offset'), ({'limit': 3}, ''),
                             ({'query': 'x', 'limit': 0}, 'limit'), ({'query': 'x', 'k': 1}, 'k'),
                             ({'query': 'x', 'filter': 'no:1'}, 'filter'), ({'query': 'x', 'window': 'y'}, ''),
                             ({'query': 'x', 'window': False}, 'window')]:
            e = self.page(400, **body)['error']
            self.assertEqual((e.get('member', ''), e['line']), (member, 1), body)
        for body, member in [({}, ''), ({'docid': ''}, 'docid'), ({'docid': 'd01', 'offset': 0}, 'offset'),
                             ({'docid': 'd01', 'limit': 'x'}, 'limit'), ({'id': 'd01'}, 'id')]:
            self.assertEqual(self.read(400, **body)['error'].get('member', ''), member)
        self.ask('/agents/nowhere/search', {'query': 'x', 'limit': 1}, 404)

    def test_a_window_outlives_its_commit(self):
        folder = os.path.join(FOLDER, 'paged')
        run('collect', self.path, '-o', folder)
        with Server('c=' + folder, '--engine=cpu') as s:
            a = s.post('/agents/c/search', {'query': 'terms', 'limit': 2, 'window': True}).json
            ids = [h['id'] for h in query(self.path, 'terms', '-k', '100')['hits']]
            with open(os.path.join(FOLDER, 'gone'), 'w', encoding='utf-8') as f:
                f.write(ids[2] + '\n')
            run('delete', '-q', folder, '--ids=' + os.path.join(FOLDER, 'gone'))
            end = time.monotonic() + 30
            while s.get('/v1/c/doc/' + ids[2]).status == 200:
                self.assertLess(time.monotonic(), end)
            hits = s.post('/agents/c/search', {'window': a['window'], 'offset': 3, 'limit': 2}).json['hits']
            self.assertEqual([h['docid'] for h in hits], ids[2:4])
            self.assertEqual(['snippet' in h for h in hits], [False, True])
            fresh = s.post('/agents/c/search', {'query': 'terms', 'limit': 100}).json['hits']
            self.assertNotIn(ids[2], [h['docid'] for h in fresh])

    # ---- OpenAI's vector stores ----

    def store(self, status=200, **body):
        return self.ask('/v1/vector_stores/docs/search', body, status)

    def test_a_vector_store_is_searched(self):
        a = self.store(query='inverted index', max_num_results=3)
        self.assertEqual((a['object'], a['search_query'], a['has_more']),
                         ('vector_store.search_results.page', ['inverted index'], False))
        theirs = query(self.path, 'inverted index', '-k', '3')['hits']
        self.assertEqual([(d['file_id'], d['score']) for d in a['data']], [(h['id'], h['score']) for h in theirs])
        d = DOCUMENTS[int(a['data'][0]['file_id'][1:])]
        self.assertEqual(a['data'][0]['filename'], d['title'])
        self.assertEqual(a['data'][0]['content'], [{'type': 'text', 'text': d['text']}])
        self.assertEqual(a['data'][0]['attributes'], {k: d[k] for k in ['year', 'kind', 'tenant']})
        self.assertEqual(self.store(query=['inverted', 'index'], max_num_results=3)['data'], a['data'])
        some = self.store(query='inverted index', ranking_options={'score_threshold': theirs[1]['score']})['data']
        self.assertEqual(len(some), sum(h['score'] >= theirs[1]['score'] for h in theirs))

    def test_filters_of_a_vector_store(self):
        tests = {'eq': lambda a, b: a == b, 'ne': lambda a, b: a != b, 'gt': lambda a, b: a > b,
                 'gte': lambda a, b: a >= b, 'lt': lambda a, b: a < b, 'lte': lambda a, b: a <= b,
                 'in': lambda a, b: a in b, 'nin': lambda a, b: a not in b}

        def meets(f, d):
            if f['type'] in ['and', 'or']:
                return (all if f['type'] == 'and' else any)(meets(g, d) for g in f['filters'])
            return f['key'] in d and tests[f['type']](d[f['key']], f['value'])

        leaf = lambda kind, key, value: {'type': kind, 'key': key, 'value': value}
        filters = [leaf(k, 'year', 2004) for k in ['eq', 'gt', 'gte', 'lt', 'lte']]
        filters += [leaf('in', 'year', [2001, 2003]), leaf('eq', 'kind', 'odd'), leaf('in', 'kind', ['even', 'x"\\y'])]
        filters += [{'type': 'and', 'filters': [leaf('gt', 'year', 2002), leaf('ne', 'kind', 'odd'),
                                                leaf('gt', 'year', 0)]},
                    {'type': 'or', 'filters': [leaf('eq', 'year', 2001), {'type': 'and', 'filters': [
                        leaf('nin', 'year', [2002, 2004]), leaf('eq', 'kind', 'even')]}]}]
        words = 'an index terms text nothing last gr\u00fc\u00dfe compression block'
        for f in filters:
            got = {d['file_id'] for d in self.store(query=words, max_num_results=50, filters=f)['data']}
            want = {d['id'] for d in DOCUMENTS if meets(f, d)}
            found = {d['file_id'] for d in self.store(query=words, max_num_results=50)['data']}
            self.assertEqual(got, want & found, f)
        for f, member in [(leaf('eq', 'nope', 1), 'filters.key'), (leaf('eq', 'year', 'x'), 'filters.value'),
                          (leaf('like', 'year', 1), 'filters.type'), ({'type': 'and', 'filters': []}, 'filters'),
                          ({'type': 'and', 'filters': [leaf('eq', 'year', 1), leaf('in', 'year', [1, 'x'])]},
                           'filters.filters[1].value'), ({'key': 'year'}, 'filters'),
                          ({**leaf('eq', 'year', 1), 'more': 1}, 'filters.more')]:
            e = self.store(400, query='x', filters=f)['error']
            self.assertEqual((e['param'], e['type']), (member, 'invalid_request_error'), f)

    def test_what_a_vector_store_has_not(self):
        for body, member in [({}, None), ({'query': 3}, 'query'), ({'query': []}, 'query'),
                             ({'query': 'x', 'max_num_results': 51}, 'max_num_results'),
                             ({'query': 'x', 'rewrite_query': True}, 'rewrite_query'),
                             ({'query': 'x', 'ranking_options': {'hybrid_search': {}}},
                              'ranking_options.hybrid_search'),
                             ({'query': 'x', 'more': 1}, 'more')]:
            self.assertEqual(self.store(400, **body)['error']['param'], member)
        self.ask('/v1/vector_stores/nowhere/search', {'query': 'x'}, 404)


if __name__ == '__main__':
    main()
