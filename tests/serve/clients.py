#!/usr/bin/env python3
"""The clients of Elasticsearch and OpenSearch, as PyPI has them, unmodified."""
import unittest

from serving import DOCUMENTS, Server, build, main, need

need('elasticsearch', 'opensearch-py')

import elasticsearch  # noqa: E402
import opensearchpy  # noqa: E402


class Clients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server('docs=' + build(), '--engine=cpu')
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
            es.search(index='docs', query={'fuzzy': {'text': 'x'}})
        self.assertIn('fuzzy', str(e.exception))
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
            os.search(index='docs', body={'query': {'wildcard': {'text': 'x*'}}})
        a = os.msearch(body=[{'index': 'docs'}, {'query': {'match': {'text': 'terms'}}}])
        self.assertEqual(a['responses'][0]['status'], 200)
        self.assertTrue(os.indices.exists(index='docs'))
        self.assertEqual(os.cluster.health()['status'], 'green')


if __name__ == '__main__':
    main()
