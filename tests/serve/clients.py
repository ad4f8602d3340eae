#!/usr/bin/env python3
"""The clients of Elasticsearch and OpenSearch, as PyPI has them, unmodified."""
import os
import unittest

from serving import DOCUMENTS, FOLDER, Server, build, main, need, run

need('elasticsearch', 'opensearch-py')

import elasticsearch  # noqa: E402
import elasticsearch.helpers  # noqa: E402
import opensearchpy  # noqa: E402
import opensearchpy.helpers  # noqa: E402


class Clients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = os.path.join(FOLDER, 'live')
        run('collect', build('live0'), '-o', folder)
        cls.server = Server('docs=' + build(), 'live=' + folder, '--writable=live', '--engine=cpu')
        url = 'http://127.0.0.1:%d' % cls.server.port
        cls.elastic = elasticsearch.Elasticsearch(url)
        cls.open = opensearchpy.OpenSearch(url)

    @classmethod
    def tearDownClass(cls):
        cls.elastic.close()
        cls.open.close()
        cls.server.stop()

    def test_elasticsearch(self):
        es = self.elastic
        self.assertEqual(es.info()['tagline'], 'You Know, for Search')
        self.assertTrue(es.ping())
        a = es.search(index='docs', query={'match': {'text': 'inverted index'}}, size=3,
            highlight={'fields': {'text': {}}},
                      aggs={'kinds': {'terms': {'field': 'kind'}}})
        self.assertEqual(a['hits']['hits'][0]['_source']['text'],
            DOCUMENTS[int(a['hits']['hits'][0]['_id'][1:])]['text'])
        self.assertEqual(sum(b['doc_count'] for b in a['aggregations']['kinds']['buckets']),
            a['hits']['total']['value'])
        self.assertEqual(es.count(index='docs', query={'term': {'kind': 'odd'}})['count'], 5)
        self.assertEqual(es.get(index='docs', id='d03')['_source']['title'], 'Title 3')
        self.assertTrue(es.exists(index='docs', id='d03'))
        self.assertFalse(es.exists(index='docs', id='none'))
        with self.assertRaises(elasticsearch.NotFoundError):
            es.get(index='docs', id='none')
        with self.assertRaises(elasticsearch.NotFoundError):
            es.search(index='nope')
        with self.assertRaises(elasticsearch.BadRequestError) as e:
            es.search(index='docs', query={'more_like_this': {'like': 'x'}})
        self.assertIn('more_like_this', str(e.exception))
        a = es.msearch(searches=[{'index': 'docs'}, {'query': {'match': {'text': 'terms'}}}, {},
            {'query': {'match_all': {}}}])
        self.assertEqual([r['status'] for r in a['responses']], [200, 200])
        self.assertEqual([d['found'] for d in es.mget(index='docs', ids=['d01', 'x'])['docs']], [True, False])
        self.assertIn('docs', es.indices.get_mapping(index='docs'))
        self.assertTrue(es.indices.exists(index='docs'))
        self.assertFalse(es.indices.exists(index='nope'))
        self.assertEqual(es.cluster.health()['status'], 'green')
        self.assertEqual(es.cat.indices(format='json')[0]['index'], 'docs')
        es.indices.refresh(index='docs')

    def test_opensearch(self):
        os = self.open
        self.assertEqual(os.info()['tagline'], 'You Know, for Search')
        self.assertTrue(os.ping())
        a = os.search(index='docs', body={'query': {'bool': {'must': {'match': {'text': 'terms'}},
                                                            'filter': {'range': {'year': {'gte': 2006}}}}}})
        self.assertTrue(all(int(h['_id'][1:]) >= 6 for h in a['hits']['hits']))
        self.assertEqual(os.count(index='docs', body={'query': {'match_all': {}}})['count'], len(DOCUMENTS))
        self.assertEqual(os.get(index='docs', id='d03')['_source']['title'], 'Title 3')
        with self.assertRaises(opensearchpy.NotFoundError):
            os.get(index='docs', id='none')
        with self.assertRaises(opensearchpy.RequestError):
            os.search(index='docs', body={'query': {'dis_max': {'queries': []}}})
        a = os.msearch(body=[{'index': 'docs'}, {'query': {'match': {'text': 'terms'}}}])
        self.assertEqual(a['responses'][0]['status'], 200)
        self.assertTrue(os.indices.exists(index='docs'))
        self.assertEqual(os.cluster.health()['status'], 'green')

    def test_elasticsearch_writes(self):
        es = self.elastic
        self.assertEqual(es.index(index='live', id='e1', document={'text': 'lynx', 'year': 1}, refresh=True)['result'],
                         'created')
        self.assertEqual(es.index(index='live', id='e1', document={'text': 'lynx lynx', 'year': 1})['result'],
                         'updated')
        with self.assertRaises(elasticsearch.ConflictError):
            es.create(index='live', id='e1', document={'text': 'x'})
        self.assertEqual(len(es.index(index='live', document={'text': 'lynx'})['_id']), 20)
        self.assertEqual(es.update(index='live', id='e1', doc={'year': 2}, refresh='wait_for')['result'], 'updated')
        self.assertEqual(es.get(index='live', id='e1')['_source'], {'text': 'lynx lynx', 'year': 2})
        with self.assertRaises(elasticsearch.NotFoundError):
            es.update(index='live', id='none', doc={'year': 2})
        with self.assertRaises(elasticsearch.BadRequestError) as e:
            es.index(index='live', id='x', document={'nope': 1})
        self.assertIn('nope', str(e.exception))
        actions = [{'_index': 'live', '_id': 'b%d' % i, 'text': 'bulk of lynxes', 'year': i} for i in range(50)]
        self.assertEqual(elasticsearch.helpers.bulk(es, actions, refresh='wait_for'), (50, []))
        self.assertEqual(es.count(index='live', query={'match': {'text': 'bulk'}})['count'], 50)
        deletions = [{'_op_type': 'delete', '_index': 'live', '_id': 'b%d' % i} for i in range(20)]
        self.assertEqual(elasticsearch.helpers.bulk(es, deletions)[0], 20)
        es.indices.refresh(index='live')
        self.assertEqual(es.count(index='live', query={'match': {'text': 'bulk'}})['count'], 30)
        good, bad = elasticsearch.helpers.bulk(es, [{'_index': 'live', '_id': 'y', 'year': 'x'},
                                                    {'_index': 'live', '_id': 'z', 'year': 3}], raise_on_error=False)
        self.assertEqual((good, bad[0]['index']['_id'], bad[0]['index']['status']), (1, 'y', 400))
        self.assertEqual(es.delete(index='live', id='e1')['result'], 'deleted')
        with self.assertRaises(elasticsearch.NotFoundError):
            es.delete(index='live', id='e1')
        with self.assertRaises(elasticsearch.AuthorizationException):
            es.index(index='docs', id='x', document={'text': 'x'})

    def test_opensearch_writes(self):
        os = self.open
        self.assertEqual(os.index(index='live', id='o1', body={'text': 'otter'}, refresh=True)['result'], 'created')
        self.assertEqual(os.update(index='live', id='o1', body={'doc': {'year': 9}}, refresh=True)['result'],
                         'updated')
        self.assertEqual(os.get(index='live', id='o1')['_source'], {'text': 'otter', 'year': 9})
        with self.assertRaises(opensearchpy.ConflictError):
            os.create(index='live', id='o1', body={'text': 'x'})
        actions = [{'_index': 'live', '_id': 'q%d' % i, 'text': 'raft of otters'} for i in range(30)]
        self.assertEqual(opensearchpy.helpers.bulk(os, actions, refresh='wait_for'), (30, []))
        self.assertEqual(os.count(index='live', body={'query': {'match': {'text': 'raft'}}})['count'], 30)
        self.assertEqual(os.delete(index='live', id='o1')['result'], 'deleted')


if __name__ == '__main__':
    main()
