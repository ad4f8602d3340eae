"""serving.py: what the tests of `gpuidx serve` begin with: indexes, a server on a free port, and a client.

    from serving import Server, build, main
    class Tests(unittest.TestCase): ...
    main()

The environment names the program (GPUIDX). Servers listen on loopback at a port that is free."""
import fcntl
import http.client
import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

GPUIDX = os.environ['GPUIDX']
FOLDER = tempfile.mkdtemp(prefix='gpuidx-serve-')

DOCUMENTS = [
    {'id': 'd%02d' % i, 'title': 'Title %d' % i, 'text': text, 'year': 2000 + i, 'kind': 'even' if i % 2 == 0
        else 'odd',
     'tenant': 'ab'[i % 2]}
    for i, text in enumerate([
        'an inverted index maps terms to documents', 'compression of an inverted index', 'block max pruning of queries',
        'queries are answered by an index', 'a <script>alert(1)</script> of text & "quotes"', 'gr\u00fc\u00dfe an alle',
        'merge the lists of all terms', 'terms, terms, and more terms', 'nothing in common',
        'the last document of all terms'])
]


def run(*arguments, **more):
    return subprocess.run([GPUIDX, *arguments], check=True, capture_output=True, text=True, **more)


def build(name='docs', documents=DOCUMENTS, *flags):
    """An index file of the documents; its path."""
    corpus, path = os.path.join(FOLDER, name + '.jsonl'), os.path.join(FOLDER, name + '.gx')
    with open(corpus, 'w', encoding='utf-8') as f:
        for d in documents:
            f.write(json.dumps(d) + '\n')
    run('build', '-q', '--force', corpus, '--store=text', '--attr=year:int', '--attr=kind:keyword',
        '--attr=tenant:keyword',
        '-o', path, *flags)
    return path


def query(path, text, *flags):
    """What `gpuidx query --format=jsonl` says."""
    return json.loads(run('query', path, '--format=jsonl', '--engine=cpu', *flags, '--', text).stdout)


class Answer:
    def __init__(self, response, body):
        self.status, self.headers, self.body = response.status, response.headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def lines(self):
        return [json.loads(line) for line in self.body.splitlines()]


class Server:
    """A running `gpuidx serve`. with Server('docs=docs.gx', '--threads=2') as s: s.post('/v1/docs/search', {...})"""

    def __init__(self, *arguments, listen='127.0.0.1:0', env=None, command='serve'):
        self.process = subprocess.Popen([GPUIDX, command, *arguments, '--listen=' + listen], stderr=subprocess.PIPE,
                                        stdout=subprocess.DEVNULL, text=True, env={**os.environ, **(env or {})})
        self.words, self.port, self.ready = [], None, threading.Event()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        if not self.ready.wait(60) or self.port is None and not listen.startswith('unix:'):
            self.process.kill()
            raise RuntimeError('the server did not start: ' + ''.join(self.words))

    def read(self):
        for line in self.process.stderr:
            self.words.append(line)
            m = re.search(r'listening at (?:http://[^ ]*:(\d+)|unix:)', line)
            if m:
                self.port = int(m.group(1)) if m.group(1) else None
                self.ready.set()
        self.ready.set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self, sig=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(sig)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise
        self.reader.join(10)
        self.process.stderr.close()
        return self.process.returncode

    def connect(self):
        return http.client.HTTPConnection('127.0.0.1', self.port, timeout=60)

    def ask(self, method, path, body=None, headers=None, connection=None):
        """One request; a body that is no text becomes JSON."""
        c = connection or self.connect()
        headers = dict(headers or {})
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode('utf-8')
        if body is not None:
            headers.setdefault('Content-Type', 'application/json')
        c.request(method, path, body, headers)
        response = c.getresponse()
        answer = Answer(response, response.read())
        if connection is None:
            c.close()
        return answer

    def get(self, path, **more):
        return self.ask('GET', path, **more)

    def post(self, path, body, **more):
        return self.ask('POST', path, body, **more)

    def raw(self, data, timeout=10):
        """Bytes to the socket, and all that comes back until it is closed or silent."""
        with socket.create_connection(('127.0.0.1', self.port), timeout=timeout) as s:
            out = b''
            try:
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
                while True:
                    more = s.recv(65536)
                    if not more:
                        return out
                    out += more
            except OSError:
                return out


def need(*packages):
    """Run the test again with a Python that has these packages of PyPI; where they cannot be had, skip it.

    They are installed into a virtual environment in the folder that GX_CLIENTS names, once."""
    modules = [p.replace('-py', '') if p == 'opensearch-py' else p for p in packages]
    if 'opensearch-py' in packages:
        modules[modules.index('opensearch')] = 'opensearchpy'
    if all(importlib.util.find_spec(m) for m in modules):
        return
    folder = os.environ.get('GX_CLIENTS')
    python = os.path.join(folder or '', 'bin', 'python')
    if folder is None or os.path.realpath(sys.prefix) == os.path.realpath(folder):
        print('skipped: Python has no ' + ', '.join(packages))
        sys.exit(77)
    try:
        lock = open(folder + '.lock', 'w', encoding='utf-8')
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests that run at once share the folder
        if not os.path.exists(python):
            subprocess.run([sys.executable, '-m', 'venv', folder], check=True, timeout=300)
        subprocess.run([python, '-m', 'pip', 'install', '-q', '--retries=1', '--timeout=10', *packages], check=True,
                       timeout=600)
    except (subprocess.SubprocessError, OSError) as e:
        print('skipped: pip cannot install %s: %s' % (', '.join(packages), e))
        sys.exit(77)
    lock.close()
    os.execv(python, [python, *sys.argv])


def main():
    try:
        program = unittest.main(module='__main__', exit=False, verbosity=1)
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
    sys.exit(0 if program.result.wasSuccessful() else 1)
