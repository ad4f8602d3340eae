#!/usr/bin/env python3
"""The page at /, in a headless Chromium (Debian: chromium, chromium-driver, python3-selenium); without one, what needs
it is skipped, and told. With GX_SCREENSHOTS=FOLDER what the page looks like is kept there."""
import json
import os
import shutil
import sys
import time
import unittest

from serving import FOLDER, Server, build, main

try:
    from selenium import webdriver
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select
    HAS_BROWSER = bool(shutil.which('chromedriver') and shutil.which('chromium'))
except ImportError:
    if sys.executable != '/usr/bin/python3' and os.path.exists('/usr/lib/python3/dist-packages/selenium'):
        shutil.rmtree(FOLDER, ignore_errors=True)
        os.execv('/usr/bin/python3', ['/usr/bin/python3', *sys.argv])  # Debian's Python has it
    HAS_BROWSER = False

EVIL = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
DOCUMENTS = [{'id': 'd%02d' % i if i else 'a/b?#"\'<&%', 'title': 'Title <b>%d</b> %s' % (i, EVIL if i == 3 else ''),
              'text': 'all terms of document %d \u00e4\U0001f600 terms %s' % (i, EVIL), 'year': 2000 + i % 5,
              'kind': ['even', 'odd & "x\\y" <i>'][i % 2], 'tenant': 'ab'[i % 2]} for i in range(30)]


class Served(unittest.TestCase):
    """What needs no browser."""

    def test_the_page_is_for_browsers_alone(self):
        with Server('docs=' + build('page', DOCUMENTS), '--engine=cpu') as s:
            a = s.ask('GET', '/', None, {'Accept': 'text/html,application/xhtml+xml,*/*;q=0.8'})
            self.assertEqual((a.status, a.headers['Content-Type']), (200, 'text/html; charset=utf-8'))
            self.assertIn("default-src 'none'", a.headers['Content-Security-Policy'])
            self.assertNotIn(b'http:', a.body)
            self.assertNotIn(b'https:', a.body)
            for accept in ['application/json', '*/*']:
                a = s.ask('GET', '/', None, {'Accept': accept})
                self.assertEqual((a.status, a.headers['X-Elastic-Product']), (200, 'Elasticsearch'))
            for path, kind in [('/_page/page.js', 'text/javascript'), ('/_page/page.css', 'text/css')]:
                a = s.get(path)
                self.assertEqual((a.status, a.headers['Content-Type'].split(';')[0]), (200, kind))
                self.assertNotIn(b'innerHTML', a.body)
                self.assertNotIn(b'://', a.body)
            for path in ['/_page/page.html', '/_page/', '/_page/../page.js', '/_page/embed.py']:
                self.assertEqual(s.get(path).status, 404, path)
            self.assertEqual(s.ask('POST', '/_page/page.js', '').status, 405)
            self.assertEqual(s.get('/v1/status').json, {'schema': 1, 'requests': 0, 'latest': 0, 'buckets': []})
            for _ in range(7):
                s.post('/v1/docs/search', {'query': 'terms'})
            self.assertEqual(sum(b['requests'] for b in s.get('/v1/status').json['buckets']), 7)


@unittest.skipUnless(HAS_BROWSER, 'chromium, chromium-driver and python3-selenium are not all there')
class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server('docs=' + build('page', DOCUMENTS), '--engine=cpu', '--threads=2')
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which('chromium')
        for flag in ['--headless=new', '--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--no-first-run',
                     '--user-data-dir=' + os.path.join(FOLDER, 'chromium')]:
            options.add_argument(flag)
        options.set_capability('goog:loggingPrefs', {'browser': 'ALL'})
        service = webdriver.chrome.service.Service(shutil.which('chromedriver'))
        cls.browser = webdriver.Chrome(service=service, options=options)

    @classmethod
    def tearDownClass(cls):
        cls.browser.quit()
        if cls.server.stop() != 0:
            raise AssertionError('the server failed: ' + ''.join(cls.server.words))

    def wait(self, condition, what='the page'):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                if condition():
                    return
            except Exception:  # an element that is being replaced
                pass
            time.sleep(0.05)
        self.fail('%s does not come; the page says: %s' % (what, self.find('#state').text))

    def find(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def open(self, width=1100, height=900, server=None, hash=''):
        self.browser.set_window_size(width, height)
        self.browser.get('about:blank')
        self.browser.get('http://127.0.0.1:%d/%s' % ((server or self.server).port, hash))

    def search(self, text):
        box = self.find('#query')
        box.clear()
        box.send_keys(text, Keys.ENTER)

    def ids(self):
        return [e.text.split(' \u00b7 ')[1] for e in self.all('#hits .about') if ' \u00b7 ' in e.text]

    def expected(self, body):
        return [h['id'] for h in self.server.post('/v1/docs/search', body).json['hits']]

    def shows(self, body):
        want = self.expected(body)
        self.wait(lambda: self.ids() == want, 'the answer to %s' % body)

    def keep(self, name):
        if os.environ.get('GX_SCREENSHOTS'):
            self.browser.save_screenshot(os.path.join(os.environ['GX_SCREENSHOTS'], name + '.png'))

    def nothing_ran(self):
        self.assertEqual(self.browser.title, 'gpuidx')
        self.assertEqual(self.all('#hits b, #hits img, #hits script, #facets i'), [])

    def test_results_facets_filter_and_explain(self):
        self.open()
        self.search('terms document')
        self.shows({'query': 'terms document'})
        self.assertIn('30 documents', self.find('#state').text)
        self.assertEqual({m.text for m in self.all('#hits mark')}, {'terms', 'document'})
        self.nothing_ran()
        self.keep('results')
        box = [e for e in self.all('#facets label') if e.text.startswith('odd')][0]
        self.assertIn('odd & "x\\y" <i>', box.text)
        box.click()
        self.shows({'query': 'terms document', 'filter': 'tenant:b'})
        self.wait(lambda: len(self.all('#facets fieldset:nth-of-type(2) label')) == 2, 'the values beside it')
        [e for e in self.all('#facets label') if e.text.startswith('2003')][0].click()
        self.shows({'query': 'terms document', 'filter': 'tenant:b AND year:2003'})
        self.find('#filter').send_keys('year:<2003', Keys.ENTER)
        self.wait(lambda: self.find('#state').text.startswith('0 documents'), 'no document')
        self.find('#filter').clear()
        self.find('#filter').send_keys('yeer:1', Keys.ENTER)
        self.wait(lambda: 'filter:' in self.find('#state').text and 'year' in self.find('#state').text, 'the fault')
        self.assertIn('bad', self.find('#state').get_attribute('class'))
        self.find('#filter').clear()
        self.find('#explain').click()
        self.wait(lambda: self.all('#hits table'), 'why')
        self.assertIn('df', self.find('#hits table').text)
        self.assertTrue(self.find('#latency').text.startswith('Last '))
        self.assertTrue(self.all('#bars i'))
        self.keep('explain')
        self.nothing_ran()
        self.find('#explain').click()

    def test_order_pages_and_a_text(self):
        self.open(hash='#query=terms')
        self.shows({'query': 'terms'})
        Select(self.find('#sort')).select_by_value('year:desc')
        self.shows({'query': 'terms', 'sort': 'year:desc'})
        self.find('#more').click()
        self.shows({'query': 'terms', 'sort': 'year:desc', 'k': 20})
        self.find('#more').click()
        self.shows({'query': 'terms', 'sort': 'year:desc', 'k': 30})
        self.wait(lambda: not self.find('#more').is_displayed(), 'the end')
        Select(self.find('#sort')).select_by_value('')
        self.shows({'query': 'terms'})
        Select(self.find('#op')).select_by_value('and')
        self.search('terms 7')
        self.shows({'query': 'terms 7', 'op': 'and'})
        self.search('')
        self.shows({'query': '', 'op': 'and'})
        self.find('#hits h2 button').click()  # the document with the strange id
        self.wait(lambda: EVIL in self.find('#hits .text').text, 'the text')
        self.nothing_ran()

    def test_keys_alone(self):
        self.open()
        self.search('terms')
        self.shows({'query': 'terms'})
        active = lambda: self.browser.switch_to.active_element
        self.browser.execute_script('document.activeElement.blur()')
        self.find('body').send_keys('j')
        self.assertEqual(active(), self.all('#hits h2 button')[0])
        active().send_keys('j')
        self.assertEqual(active(), self.all('#hits h2 button')[1])
        active().send_keys('k')
        active().send_keys(Keys.ENTER)
        self.wait(lambda: self.all('#hits .text'), 'the text')
        active().send_keys('/')
        self.assertEqual(active().get_attribute('id'), 'query')
        active().send_keys('document /', Keys.ENTER)  # what is selected is replaced; / is typed
        self.shows({'query': 'document'})
        self.assertEqual(self.find('#query').get_attribute('value'), 'document /')
        for _ in range(9):  # by Tab to a check box, and the space key
            active().send_keys(Keys.TAB)
            if active().get_attribute('type') == 'checkbox' and active().get_attribute('id') == '':
                break
        self.assertEqual(active().get_attribute('type'), 'checkbox')
        key = self.browser.execute_script('return document.activeElement.dataset.key')
        active().send_keys(Keys.SPACE)
        self.wait(lambda: self.browser.execute_script('return document.activeElement.dataset.key') == key and
                  active().is_selected(), 'the focus where it was')

    def test_narrow_and_dark(self):
        for width in (360, 1100):
            for scheme in ('light', 'dark'):
                self.browser.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', {
                    'width': width, 'height': 760, 'deviceScaleFactor': 1, 'mobile': width == 360})
                self.browser.execute_cdp_cmd('Emulation.setEmulatedMedia', {
                    'features': [{'name': 'prefers-color-scheme', 'value': scheme}]})
                self.open(hash='#query=terms+document')
                self.shows({'query': 'terms document'})
                self.find('#explain').click()
                self.wait(lambda: self.all('#hits table'), 'why')
                wide, inner = self.browser.execute_script(
                    'return [document.documentElement.scrollWidth, window.innerWidth]')
                self.assertLessEqual(wide, inner)
                colour = self.browser.execute_script('return getComputedStyle(document.body).backgroundColor')
                self.assertEqual(colour, {'light': 'rgb(255, 255, 255)', 'dark': 'rgb(22, 22, 22)'}[scheme])
                self.keep('%s-%d' % (scheme, width))
        self.browser.execute_cdp_cmd('Emulation.clearDeviceMetricsOverride', {})
        self.browser.execute_cdp_cmd('Emulation.setEmulatedMedia', {'features': []})

    def test_a_token_is_asked_for_and_its_filter_holds(self):
        path = os.path.join(FOLDER, 'page-tokens.json')
        with open(path, 'w', encoding='utf-8') as f:
            json.dump({'tokens': [{'name': 't', 'token': 'secret-of-tenant-a', 'filter': 'tenant:a'}]}, f)
        os.chmod(path, 0o600)
        with Server('docs=' + build('page', DOCUMENTS), '--engine=cpu', '--tokens=' + path) as s:
            self.open(server=s)
            self.wait(lambda: self.find('#token').is_displayed(), 'the field of the token')
            self.find('#token').send_keys('secret-of-tenant-a', Keys.ENTER)
            self.wait(lambda: self.find('#state').text.startswith('15 documents'), 'the documents of the tenant')
            self.assertEqual(len(self.all('#facets fieldset:nth-of-type(2) label')), 1)

    def test_nothing_is_said_on_the_console(self):
        self.open(hash='#query=terms')
        self.shows({'query': 'terms'})
        log = [e for e in self.browser.get_log('browser') if 'favicon' not in e['message'] and '/v1/docs/search' not in
               e['message'] and '401' not in e['message']]
        self.assertEqual(log, [])


if __name__ == '__main__':
    main()
