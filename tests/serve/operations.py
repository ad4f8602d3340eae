#!/usr/bin/env python3
"""How a server is run: commits, tokens, hosts, limits, slow clients, drains, metrics, logs, systemd."""
import base64
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import unittest

from serving import DOCUMENTS, FOLDER, GPUIDX, Server, build, main, run


def wait_for(condition, seconds=20):
    """Whether the condition holds before that time is over."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def read(path):
    with open(path, encoding='utf-8') as f:
        return f.read()


class Operations(unittest.TestCase):
    def serve(self, *arguments, **more):
        s = Server(*arguments, **more)
        self.addCleanup(s.stop)
        return s

    def write(self, name, text):
        path = os.path.join(FOLDER, name)
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
        return path

    def test_the_board_asks_for_metrics_that_there_are(self):
        folder = os.path.join(FOLDER, 'board')
        run('collect', build('board'), '-o', folder)
        s = self.serve('b=' + folder, '--writable=b', '--engine=cpu')
        s.post('/v1/b/search', {'query': 'terms'})
        there = set(re.findall(r'^# TYPE (\w+)', s.get('/metrics').body.decode(), re.M))
        board = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../tools/serve/operate/grafana.json')
        with open(board, encoding='utf-8') as f:
            panels = json.load(f)['panels']
        for panel in panels:
            for target in panel['targets']:
                for name in re.findall(r'gpuidx_\w+', target['expr']):
                    name = re.sub('_bucket$', '', name)
                    self.assertTrue(name in there or name == 'gpuidx_gpu_memory_free_bytes', name)

    def test_the_units_name_flags_that_there_are(self):
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../tools/serve/operate')
        text = read(os.path.join(folder, 'gpuidx.service'))
        help_text = run('help', 'serve').stdout
        for flag in re.findall(r'--[a-z-]+', text.replace('--now', '')):
            self.assertIn(flag, help_text)
        self.assertIn('ListenStream=127.0.0.1:', read(os.path.join(folder, 'gpuidx.socket')))

    def test_the_manifests_and_the_job_name_what_there_is(self):
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../tools/serve/operate')
        help_text, s = run('help', 'serve').stdout, self.serve('docs=' + build(), '--engine=cpu')
        text = read(os.path.join(folder, 'kubernetes.yaml'))
        for flag in re.findall(r'- (--[a-z-]+)', text) + re.findall(r'serve "\$@" (--\w+)',
                                                                   read(os.path.join(folder, 'slurm.sh'))):
            self.assertIn(flag, help_text)
        for path in re.findall(r'path: (/[a-z/]+)', text):
            self.assertEqual(s.get(path).status, 200, path)

    def test_a_job_of_slurm(self):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../tools/serve/operate/slurm.sh')
        folder = os.path.join(FOLDER, 'job')
        p = subprocess.Popen(['bash', script, 'docs=' + build()], stderr=subprocess.PIPE, text=True, env={
            **os.environ, 'GPUIDX': os.environ['GPUIDX'], 'GPUIDX_FOLDER': folder, 'GPUIDX_PORT': '0',
            'SLURM_CPUS_PER_TASK': '2', 'SLURMD_NODENAME': '127.0.0.1'})
        try:
            end = time.monotonic() + 60
            while not os.path.exists(os.path.join(folder, 'address')) and time.monotonic() < end:
                time.sleep(0.05)
            time.sleep(0.2)
            address, token = (read(os.path.join(folder, n)).strip() for n in ['address', 'token'])
            self.assertEqual(os.stat(os.path.join(folder, 'token')).st_mode & 0o77, 0)
            for headers, status in [({}, 401), ({'Authorization': 'Bearer ' + token}, 200)]:
                c = http.client.HTTPConnection(address.split('//')[1], timeout=60)
                c.request('POST', '/retrieve', '{"queries": ["terms"]}', headers)
                self.assertEqual(c.getresponse().status, status)
                c.close()
        finally:
            p.terminate()
            words = p.communicate(timeout=60)[1]
        self.assertEqual(p.returncode, 0, words)
        p = subprocess.run(['bash', script], capture_output=True, text=True)
        self.assertEqual((p.returncode, p.stderr), (2, 'usage: sbatch slurm.sh NAME=INDEX...\n'))

    def test_latencies_are_told(self):
        s = self.serve('docs=' + build(), '--engine=cpu')
        self.assertEqual(s.get('/v1/status').json['latest'], 0)
        for _ in range(20):
            s.post('/v1/docs/search', {'query': 'terms'})
        a = s.get('/v1/status').json
        self.assertEqual((a['requests'], a['latest']), (20, 20))
        self.assertLessEqual(a['p50_us'], a['p99_us'])

    # ---- commits ----

    def test_commits_of_others_are_served(self):
        folder = os.path.join(FOLDER, 'live')
        run('collect', build('live0'), '-o', folder)
        s = self.serve('live=' + folder, '--engine=cpu')
        failed, stop = [], threading.Event()

        def ask():
            c = s.connect()
            while not stop.is_set():
                for body in [{'query': 'terms', 'k': 50}, {'query': 'terms', 'k': 50, 'count': True}]:
                    a = s.post('/v1/live/search', body, connection=c)
                    if a.status != 200 or 'matches' in a.json and a.json['matches'] != len(a.json['hits']):
                        failed.append(a.body)
        thread = threading.Thread(target=ask)
        thread.start()
        for i in range(8):
            more = self.write('more.jsonl', json.dumps({'id': 'n%d' % i, 'text': 'terms of another commit'}) + '\n')
            run('add', folder, more)
            begin = time.monotonic()
            self.assertTrue(wait_for(lambda: s.get('/v1/live/doc/n%d' % i).status == 200))
            if i == 7:
                print('a commit was served after %.2f s' % (time.monotonic() - begin))
        run('delete', folder, '--ids=' + self.write('ids', 'n3\n'))
        self.assertTrue(wait_for(lambda: s.get('/v1/live/doc/n3').status == 404))
        stop.set()
        thread.join()
        self.assertEqual(failed, [])

    def test_a_file_may_be_replaced(self):
        path = build('replaced')
        s = self.serve('r=' + path, '--engine=cpu')
        self.assertEqual(s.get('/v1/r').json['documents'], len(DOCUMENTS))
        build('replaced', DOCUMENTS[:3])
        self.assertTrue(wait_for(lambda: s.get('/v1/r').json['documents'] == 3))
        self.assertEqual(len(s.post('/v1/r/search', {'query': 'index'}).json['hits']), 2)

    # ---- who asks ----

    TOKENS = {'tokens': [
        {'name': 'all', 'token': 'the-token-of-all-indexes'},
        {'name': 'a', 'token': 'the-token-of-tenant-a', 'indexes': ['docs'], 'filter': 'tenant:a'},
        {'name': 'writer', 'token': 'the-token-of-a-writer', 'access': 'write'},
    ]}

    def ask(self, s, token, method, path, body=None):
        return s.ask(method, path, body, {'Authorization': 'Bearer ' + token} if token else {})

    def test_tokens(self):
        tokens = self.write('tokens.json', json.dumps(self.TOKENS))
        s = self.serve('docs=' + build(), 'other=' + build('other'), '--engine=cpu', '--tokens=' + tokens)
        everything, tenant = 'the-token-of-all-indexes', 'the-token-of-tenant-a'
        self.assertEqual(self.ask(s, None, 'GET', '/v1').status, 401)
        self.assertEqual(self.ask(s, 'wrong', 'GET', '/v1').status, 401)
        self.assertEqual(self.ask(s, None, 'GET', '/health/livez').status, 200)
        self.assertEqual(self.ask(s, None, 'GET', '/metrics').status, 401)
        self.assertEqual(self.ask(s, everything, 'GET', '/metrics').status, 200)
        self.assertEqual([i['name'] for i in self.ask(s, everything, 'GET', '/v1').json['indexes']], ['docs', 'other'])
        self.assertEqual([i['name'] for i in self.ask(s, tenant, 'GET', '/v1').json['indexes']], ['docs'])
        self.assertEqual(self.ask(s, tenant, 'POST', '/v1/other/search', {'query': 'x'}).status, 403)
        self.assertEqual(self.ask(s, tenant, 'POST', '/v1/nowhere/search', {'query': 'x'}).status, 403)
        basic = base64.b64encode(b'user:' + tenant.encode()).decode()
        for authorization in ['ApiKey ' + tenant, 'Basic ' + basic, 'bearer ' + tenant]:
            self.assertEqual(s.ask('GET', '/v1/docs', None, {'Authorization': authorization}).status, 200)
        for authorization in ['Basic !!!', 'Basic ' + base64.b64encode(b'none').decode(), 'Digest x', '', 'Bearer']:
            self.assertEqual(s.ask('GET', '/v1/docs', None, {'Authorization': authorization}).status, 401)

    def test_a_tenant_sees_its_documents_alone(self):
        tokens = self.write('tenants.json', json.dumps(self.TOKENS))
        s = self.serve('docs=' + build(), '--engine=cpu', '--tokens=' + tokens)
        own = {d['id'] for d in DOCUMENTS if d['tenant'] == 'a'}
        ask = lambda method, path, body=None: self.ask(s, 'the-token-of-tenant-a', method, path, body)
        queries = ['terms', 'index', 'all terms index queries', 'documents']
        for extra in [{}, {'filter': 'tenant:b OR year:>0'}, {'filter': 'tenant:b'}, {'count': True},
                      {'snippets': True, 'explain': True, 'fields': ['text']}, {'rm3': 'on'}, {'op': 'and'},
                      {'facets': ['tenant']}, {'syntax': 'boolean'}, {'facets': ['tenant/kind'], 'sums': 'year'}]:
            for q in queries:
                a = ask('POST', '/v1/docs/search', {'query': q, 'k': 100, **extra}).json
                self.assertLessEqual({h['id'] for h in a['hits']}, own)
                for f in a.get('facets', []):
                    self.assertLessEqual({g['value'] for g in f['groups']}, {'a'})
                if 'matches' in a:
                    self.assertEqual(a['matches'], len(a['hits']))
        for facets in [['tenant:exclude-own'], ['kind', 'year:exclude-own'], ['kind:exclude-own/tenant']]:
            a = ask('POST', '/v1/docs/search', {'query': 'terms', 'facets': facets, 'filter': 'year:>0'})
            self.assertEqual(a.status, 400)
            self.assertIn('exclude-own', a.json['error']['message'])
        for f in ['year:>0) OR (tenant:b', 'tenant:b)) OR ((year:>0', 'tenant:a OR tenant:b', 'NOT tenant:a']:
            a = ask('POST', '/v1/docs/search', {'query': 'terms', 'filter': f})
            self.assertTrue(a.status == 400 or {h['id'] for h in a.json['hits']} <= own, f)
        lines = ''.join(json.dumps({'query': q, 'k': 100}) + '\n' for q in queries)
        a = s.ask('POST', '/v1/docs/search', lines, {'Authorization': 'Bearer the-token-of-tenant-a',
                                                     'Content-Type': 'application/x-ndjson'})
        self.assertLessEqual({h['id'] for line in a.lines for h in line['hits']}, own)
        for d in DOCUMENTS:
            self.assertEqual(ask('GET', '/v1/docs/doc/' + d['id']).status, 200 if d['id'] in own else 404)
        a = ask('GET', '/v1/docs/search?query=terms&hits=100&filter=tenant:b').json
        self.assertEqual(a['candidates'], [])
        a = ask('POST', '/retrieve', {'queries': queries, 'topk': 100}).json['result']
        self.assertLessEqual({d['id'] for found in a for d in found}, own)
        for a in (ask('GET', '/v1/docs/suggest?prefix=te'), ask('GET', '/v1/docs/suggest?like=trems'), ask(
                'POST', '/docs/_search', {'suggest': {'text': 'trems', 'a': {'term': {'field': 'text'}}}})):
            self.assertEqual(a.status, 403)
            self.assertNotIn('term"', a.body if isinstance(a.body, str) else a.body.decode())
        counted = ask('POST', '/v1/docs/count', {'query': 'index'}).json['count']
        self.assertEqual(counted, len(ask('POST', '/v1/docs/search', {'query': 'index', 'k': 100}).json['hits']))

    def test_tokens_are_read_again(self):
        tokens = self.write('again.json', json.dumps(self.TOKENS))
        s = self.serve('docs=' + build(), '--engine=cpu', '--tokens=' + tokens)
        new = {'tokens': [{'name': 'new', 'token': 'the-token-of-tomorrow'}]}
        self.write('again.json', '{"tokens": [')
        s.process.send_signal(signal.SIGHUP)
        self.assertTrue(wait_for(lambda: any('old tokens stay' in w for w in s.words)))
        self.assertEqual(self.ask(s, 'the-token-of-tenant-a', 'GET', '/v1').status, 200)
        self.write('again.json', json.dumps(new))
        s.process.send_signal(signal.SIGHUP)
        self.assertTrue(wait_for(lambda: self.ask(s, 'the-token-of-tomorrow', 'GET', '/v1').status == 200))
        self.assertEqual(self.ask(s, 'the-token-of-tenant-a', 'GET', '/v1').status, 401)

    def test_malformed_files_of_tokens(self):
        path = build()
        for text, words in [('', 'empty'), ('{"tokens": [{"name": "x"}]}', "'name' and 'token'"), ('{"tokens": 3}',
            'array'),
                            ('{"tokens": [{"name": "x", "token": "short"}]}', '16'), ('{"token": []}',
                            "no member 'token'"),
                            ('{"tokens": [{"name": "x", "token": "0123456789abcdef", "access": "admin"}]}', 'admin')]:
            p = subprocess.run([GPUIDX, 'serve', path, '--tokens=' + self.write('bad.json', text)], capture_output=True,
                               text=True, timeout=60)
            self.assertEqual(p.returncode, 3, p.stderr)
            self.assertIn(words, p.stderr)
        p = subprocess.run([GPUIDX, 'serve', path, '--tokens=/nowhere/x'], capture_output=True, text=True, timeout=60)
        self.assertEqual(p.returncode, 5)

    def test_hosts_and_origins(self):
        s = self.serve('docs=' + build(), '--engine=cpu', '--allow-origin=https://good.example')
        for host, status in [('127.0.0.1:%d' % s.port, 200), ('localhost:%d' % s.port, 200), ('[::1]:%d' % s.port, 200),
                             ('evil.example', 403), ('127.0.0.1.evil.example', 403), ('localhost.evil:80', 403)]:
            self.assertEqual(s.ask('GET', '/v1', None, {'Host': host}).status, status, host)
        own = 'http://127.0.0.1:%d' % s.port
        for origin, status in [(own, 200), ('https://good.example', 200), ('http://good.example', 403), ('null', 403),
                               ('https://evil.example', 403), ('https://good.example.evil', 403)]:
            a = s.ask('GET', '/v1', None, {'Origin': origin})
            self.assertEqual(a.status, status, origin)
            allowed = a.headers['Access-Control-Allow-Origin']
            self.assertEqual(allowed, origin if origin == 'https://good.example' else None)
        named = self.serve('docs=' + build(), '--engine=cpu', '--allow-host=search.example,other.example:81')
        for host, status in [('search.example', 200), ('search.example:90', 200), ('other.example:81', 200), ('x',
            403)]:
            self.assertEqual(named.ask('GET', '/v1', None, {'Host': host}).status, status, host)

    # ---- limits ----

    def test_bodies_and_headers_are_limited(self):
        s = self.serve('docs=' + build(), '--engine=cpu', '--max-body=4096')
        large = json.dumps({'query': 'x' * 5000})
        self.assertEqual(s.post('/v1/docs/search', large).status, 413)
        self.assertEqual(s.post('/v1/docs/search', {'query': 'x' * 3000}).status, 200)
        chunks = b''.join(b'%x\r\n%s\r\n' % (1000, b'x' * 1000) for _ in range(8)) + b'0\r\n\r\n'
        head = b'POST /v1/docs/search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n'
        self.assertIn(b' 413 ', s.raw(head + chunks))
        self.assertRegex(s.raw(b'GET /v1 HTTP/1.1\r\nHost: localhost\r\nX: ' + b'y' * 100000 + b'\r\n\r\n')[:30],
                         b'^(HTTP/1.1 4(31|13|14) |$)')
        self.assertEqual(s.get('/v1').status, 200)

    def test_garbage(self):
        s = self.serve('docs=' + build(), '--engine=cpu')
        for data in [b'\0' * 1000, b'GET\r\n\r\n', b'GET / HTTP/9.9\r\n\r\n', b'\xff\xfe' * 500,
            b'POST / HTTP/1.1\r\n\r\n',
                     b'GET /v1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n', b'\r\n' * 1000,
                     b'POST /v1/docs/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"query"']:
            s.raw(data, timeout=3)
        self.assertEqual(s.get('/v1').status, 200)

    def test_slow_clients_are_closed(self):
        s = self.serve('docs=' + build(), '--engine=cpu', '--slow-timeout=1', '--idle-timeout=2')
        sockets = [socket.create_connection(('127.0.0.1', s.port)) for _ in range(200)]
        half = b'POST /v1/docs/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{'
        for i, c in enumerate(sockets):
            c.sendall(half if i % 3 == 0 else b'GET /v1 HTTP/1.1\r\nHo' if i % 3 == 1 else b'')
            c.settimeout(20)
        self.assertEqual(s.get('/v1').status, 200)
        end = time.monotonic() + 20
        for c in sockets:
            while time.monotonic() < end:
                try:
                    if not c.recv(1000):
                        break
                except ConnectionError:
                    break
            c.close()
        self.assertLess(time.monotonic(), end)
        self.assertEqual(s.get('/v1').status, 200)

    def test_a_time_limit_of_a_request(self):
        s = self.serve('docs=' + build(), '--engine=cpu')
        self.assertEqual(s.post('/v1/docs/search', {'query': 'terms', 'timeout_ms': 60000}).status, 200)
        self.assertEqual(s.post('/v1/docs/search', {'query': 'terms', 'timeout_ms': 0}).status, 400)

    # ---- the end ----

    def test_a_drain_loses_nothing(self):
        s = self.serve('docs=' + build(), '--engine=cpu', '--threads=2')
        done, lost, stop, signalled = [0], [], threading.Event(), threading.Event()

        def ask():
            c = s.connect()
            while not stop.is_set():
                late = signalled.is_set()  # a request that is sent later may meet a connection that is closed
                try:
                    c.request('POST', '/v1/docs/search', json.dumps({'query': 'terms', 'count': done[0] % 2 == 0}),
                              {'Content-Type': 'application/json'})
                except (ConnectionError, http.client.CannotSendRequest, OSError):
                    return  # the server took no more
                try:
                    r = c.getresponse()
                    body = r.read()
                    if r.status != 200:
                        lost.append(body)
                    done[0] += 1
                    if r.headers.get('Connection') == 'close':
                        return
                except (http.client.RemoteDisconnected, ConnectionError):
                    if not late:
                        lost.append(b'disconnected')
                    return
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for t in threads:
            t.start()
        time.sleep(0.5)
        signalled.set()
        self.assertEqual(s.stop(), 0)
        stop.set()
        for t in threads:
            t.join(30)
        self.assertGreater(done[0], 50)
        self.assertEqual(lost, [])

    def test_health(self):
        s = self.serve('docs=' + build(), '--engine=cpu')
        self.assertEqual(s.get('/health/livez').status, 200)
        self.assertEqual(s.get('/health/readyz').json, {'status': 'ready'})

    # ---- what is told ----

    def test_metrics_and_log(self):
        log = os.path.join(FOLDER, 'access.log')
        s = self.serve('docs=' + build(), '--engine=cpu', '--access-log=' + log)
        for _ in range(5):
            s.post('/v1/docs/search', {'query': 'terms'})
        s.post('/v1/docs/search', '{')
        s.get('/nowhere/"<x>')
        text = s.get('/metrics').body.decode()
        for line in text.splitlines():
            self.assertRegex(line,
                r'^(# (HELP|TYPE) gpuidx_\w+ .+|gpuidx_\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? [-+.e0-9]+)$')
        value = lambda name: float(re.search('^' + re.escape(name) + r' (\S+)$', text, re.M).group(1))
        self.assertEqual(value('gpuidx_requests_total{method="POST",route="/v1/{index}/search",status="2xx"}'), 5)
        self.assertEqual(value('gpuidx_requests_total{method="POST",route="/v1/{index}/search",status="4xx"}'), 1)
        self.assertEqual(value('gpuidx_documents{index="docs"}'), len(DOCUMENTS))
        self.assertEqual(value('gpuidx_answers_total{index="docs",processor="cpu"}'), 5)
        self.assertEqual(value('gpuidx_queries_under_way{index="docs"}'), 0)
        self.assertTrue(wait_for(lambda: os.path.exists(log) and read(log).count('\n') >= 8))
        os.rename(log, log + '.1')
        s.process.send_signal(signal.SIGHUP)
        self.assertTrue(wait_for(lambda: os.path.exists(log)))
        s.get('/v1')
        self.assertTrue(wait_for(lambda: read(log).count('\n') >= 1))
        lines = [json.loads(line) for line in read(log + '.1').splitlines()]
        self.assertEqual([line['status'] for line in lines], [200] * 5 + [400, 404, 200])
        self.assertEqual({line['route'] for line in lines[:6]}, {'/v1/{index}/search'})
        self.assertIn('JSON', lines[5]['error'])

    # ---- systemd ----

    def test_systemd(self):
        notes = os.path.join(FOLDER, 'notify')
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        listener.bind(notes)
        listener.settimeout(20)
        s = self.serve('docs=' + build(), '--engine=cpu', env={'NOTIFY_SOCKET': notes})
        self.assertEqual(listener.recv(100), b'READY=1')
        s.stop()
        self.assertEqual(listener.recv(100), b'STOPPING=1')
        listener.close()

    def test_a_socket_that_is_passed(self):
        passed = socket.create_server(('127.0.0.1', 0))
        fd = passed.fileno()
        script = 'import os,sys; os.dup2(%d, 3); os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid())); ' \
                 'os.set_inheritable(3, True); os.execv(sys.argv[1], sys.argv[1:])' % fd
        p = subprocess.Popen(['python3', '-c', script, GPUIDX, 'serve', 'docs=' + build(), '--engine=cpu'],
            pass_fds=[fd],
                             stderr=subprocess.PIPE, text=True)
        self.assertIn(':%d' % passed.getsockname()[1], p.stderr.readline())
        c = http.client.HTTPConnection('127.0.0.1', passed.getsockname()[1], timeout=20)
        c.request('GET', '/v1')
        self.assertEqual(c.getresponse().status, 200)
        p.terminate()
        self.assertEqual(p.wait(30), 0)
        p.stderr.close()
        passed.close()

    def test_a_socket_file(self):
        path = os.path.join(FOLDER, 'socket')
        for _ in range(2):
            s = Server('docs=' + build(), '--engine=cpu', listen='unix:' + path)
            with socket.socket(socket.AF_UNIX) as c:
                c.connect(path)
                c.sendall(b'GET /v1/docs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
                self.assertIn(b'"documents":10', c.makefile('rb').read())
            s.stop(signal.SIGKILL if _ == 0 else signal.SIGTERM)  # a dead one's file is taken over
        self.assertFalse(os.path.exists(path))

    def test_what_cannot_be_served(self):
        path = build()
        for arguments, code, words in [
            (['/nowhere.gx'], 5, 'nowhere'), (['a=' + path, 'a=' + path], 2, 'twice'), (['_a=' + path], 2, 'name'),
            ([path, '--listen=nonsense'], 2, 'ADDR:PORT'), ([path, '--listen=127.0.0.1:99999'], 2, 'listen'),
            ([path, '--listen=192.0.2.1:7'], 5, 'listen'), ([path, '--engine=gpu', '--device=900'], 7, ''),
            ([path, '--listen=unix:/nowhere/socket'], 5, 'listen'),
        ]:
            p = subprocess.run([GPUIDX, 'serve', *arguments], capture_output=True, text=True, timeout=60)
            self.assertEqual(p.returncode, code, (arguments, p.stderr))
            self.assertIn(words, p.stderr)


if __name__ == '__main__':
    main()
