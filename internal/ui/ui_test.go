package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

func newConsole(t *testing.T) *Console {
	t.Helper()
	c, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func serve(c *Console, name string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	if name == "" {
		c.ServePage(w, r)
	} else if !c.ServeFile(w, r, c.version, name) {
		w.WriteHeader(http.StatusNotFound)
	}
	return w
}

// A browser may only load from this origin, and may neither run inline scripts nor write markup.
func TestPolicy(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	for _, name := range []string{"", "core/main.js", "style/console.css", "style/icon.svg"} {
		h := serve(c, name).Header()
		want := Policy
		if name == "" {
			want = c.policy
		}
		if h.Get("Content-Security-Policy") != want || h.Get("X-Content-Type-Options") != "nosniff" ||
			h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cross-Origin-Opener-Policy") != "same-origin" {
			t.Errorf("%s: headers %v", name, h)
		}
	}
	if strings.Contains(Policy, "unsafe") || strings.Contains(Policy, "http:") || strings.Contains(Policy, "https:") ||
		strings.Contains(Policy, "data:") {
		t.Errorf("the policy %q is not strict", Policy)
	}
	for _, must := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'",
		"form-action 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'", "script-src 'self';",
		"style-src 'self';", "frame-src blob:;"} {
		if !strings.Contains(Policy, must) {
			t.Errorf("the policy lacks %s", must)
		}
	}
	page := serve(c, "").Body.String()
	_, nonce, _ := strings.Cut(page, ` nonce="`)
	nonce, _, _ = strings.Cut(nonce, `"`)
	if other := newConsole(t); len(nonce) < 20 || strings.Contains(other.policy, nonce) ||
		strings.Replace(c.policy, " 'nonce-"+nonce+"'", "", 1) != Policy ||
		!strings.Contains(c.policy, "style-src 'self' 'nonce-"+nonce+"';") {
		t.Errorf("the nonce %q, the page's policy %q", nonce, c.policy)
	}
	if bad := regexp.MustCompile(
		`(?i)<style|\sstyle=|\son\w+=|<script(?:[^>]*[^>])?>[^<]|(?:href|src)="(?:[a-z]+:|/)`).FindString(
		page); bad != "" {
		t.Errorf("the page has %q", bad)
	}
	if strings.Contains(page, pageVersion) || !strings.Contains(page, `src="`+c.version+`/core/main.js"`) {
		t.Errorf("the page does not name its files: %s", page)
	}
}

// Files of this version never change and are compressed if the browser accepts it. Files of other versions do not
// exist. The page is revalidated each time.
func TestCaching(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	page, file := serve(c, ""), serve(c, "core/main.js", "Accept-Encoding", "br, gzip;q=0.8")
	if page.Header().Get("Cache-Control") != "no-cache" ||
		file.Header().Get("Cache-Control") != "public, max-age=31536000, immutable" {
		t.Errorf("caching: page %q, file %q", page.Header().Get("Cache-Control"), file.Header().Get("Cache-Control"))
	}
	z, err := gzip.NewReader(file.Body)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(z)
	if want := c.files["core/main.js"].plain; err != nil || !bytes.Equal(got, want) ||
		file.Header().Get("Content-Encoding") != "gzip" {
		t.Errorf("packed: %v, %d bytes, want %d", err, len(got), len(want))
	}
	for _, none := range []string{"", "br", "gzip;q=0", "gzip; q=0.0"} {
		if w := serve(c, "core/main.js", "Accept-Encoding",
			none); w.Header().Get("Content-Encoding") != "" || !bytes.Equal(w.Body.Bytes(), got) {
			t.Errorf("Accept-Encoding: %q got %q", none, w.Header().Get("Content-Encoding"))
		}
	}
	if tag := page.Header().Get("Etag"); serve(c, "", "If-None-Match", tag).Code != http.StatusNotModified ||
		serve(c, "", "If-None-Match", `"other"`).Code != http.StatusOK {
		t.Errorf("the page's ETag %s does not count", tag)
	}
	if file.Header().Get("Etag") == serve(c, "core/main.js").Header().Get("Etag") {
		t.Error("a file has one ETag for two encodings")
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for version, name := range map[string]string{"0000000000000000": "core/main.js", c.version: "core/none.js"} {
		if w := httptest.NewRecorder(); c.ServeFile(w, r, version, name) || w.Body.Len() > 0 {
			t.Errorf("%s of version %s is served", name, version)
		}
	}
}

func TestVersionIsThatOfAllFiles(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{"web/index.html": {Data: []byte("VERSION")}, "web/core/a.js": {Data: []byte("a")}}
	one, err := read(tree)
	if err != nil {
		t.Fatal(err)
	}
	tree["web/core/a.js"] = &fstest.MapFile{Data: []byte("b")}
	two, err := read(tree)
	if err != nil || one.version == two.version || string(two.page.plain) != two.version {
		t.Errorf("versions %s and %s, page %s, %v", one.version, two.version, two.page.plain, err)
	}
	delete(tree, "web/index.html")
	if _, err := read(tree); err == nil {
		t.Error("a console without a page is one")
	}
}

var (
	importing = regexp.MustCompile(`(?:from\s*|import\s*)['"](\.[^'"]+)['"]`)
	lazily    = regexp.MustCompile(`import\(['"]([^'"]+\.js)['"]\)`) // other import() expressions name types
)

// first returns the size of what a browser loads for a page: the module and its imports.
func first(t *testing.T, c *Console, name string, seen map[string]int) {
	t.Helper()
	f := c.files[name]
	if f == nil {
		t.Fatalf("there is no %s", name)
	}
	if _, twice := seen[name]; twice {
		return
	}
	seen[name] = len(f.plain)
	for _, m := range importing.FindAllSubmatch(f.plain, -1) {
		first(t, c, path.Join(path.Dir(name), string(m[1])), seen)
	}
}

// The first paint of Live loads less than 100 kB in total, uncompressed.
func TestFirstPaint(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	seen := map[string]int{"index.html": len(c.page.plain), "console.css": len(c.files["style/console.css"].plain),
		"icon.svg": len(c.files["style/icon.svg"].plain)}
	first(t, c, "core/main.js", seen)
	first(t, c, "pages/live.js", seen)
	total := 0
	for _, n := range seen {
		total += n
	}
	t.Logf("%d bytes in %d files", total, len(seen))
	if total >= 100_000 {
		t.Errorf("%d bytes: %v", total, seen)
	}
	if seen["vendor/preact.js"] == 0 || seen["vendor/signals.js"] == 0 {
		t.Errorf("the imports were not followed: %v", seen)
	}
}

// own calls f for each of our own source files.
func own(t *testing.T, f func(name, text string)) {
	t.Helper()
	n := 0
	err := fs.WalkDir(files, "web", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(name, "web/vendor/") {
			return err
		}
		data, err := fs.ReadFile(files, name)
		n++
		f(strings.TrimPrefix(name, "web/"), string(data))
		return err
	})
	if err != nil || n < 10 {
		t.Fatalf("%d files, %v", n, err)
	}
}

// Output of programs and models can only become text. Only the theme is kept beyond the tab.
func TestSourcesWriteNoMarkup(t *testing.T) {
	t.Parallel()
	markup := regexp.MustCompile(
		`dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|srcdoc|createContextualFragment|\beval\(|new Function|javascript:|setTimeout\(['"` + "`" + `]`)
	own(t, func(name, text string) {
		if bad := markup.FindString(text); bad != "" {
			t.Errorf("%s has %s", name, bad)
		}
		if bad := regexp.MustCompile(`https?://`).FindString(strings.ReplaceAll(text, `http://www.w3.org/2000/svg`,
			"")); bad != "" {
			t.Errorf("%s names another host", name)
		}
		if strings.Contains(text, "localStorage") && name != "core/theme.js" ||
			strings.Contains(text, "document.cookie") {
			t.Errorf("%s keeps something beyond the tab", name)
		}
		if n := strings.Count(text, "\n"); n > 300 {
			t.Errorf("%s has %d lines, at most 300 are wanted", name, n)
		}
	})
}

// Every import, and every page that is loaded lazily, exists.
func TestImportsResolve(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	for name, f := range c.files {
		if path.Ext(name) != ".js" {
			continue
		}
		for _, m := range append(importing.FindAllSubmatch(f.plain, -1), lazily.FindAllSubmatch(f.plain, -1)...) {
			if to := path.Join(path.Dir(name), string(m[1])); c.files[to] == nil {
				t.Errorf("%s imports %s", name, m[1])
			}
		}
	}
}

// The libraries have the checksums that scripts/console-vendor wrote, each with its licence.
func TestVendoredFiles(t *testing.T) {
	t.Parallel()
	sums, err := os.ReadFile("web/vendor/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		listed[name] = sum
	}
	entries, err := os.ReadDir("web/vendor")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == "SHA256SUMS" {
			continue
		}
		data, err := os.ReadFile("web/vendor/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		if listed[e.Name()] != hex.EncodeToString(sum[:]) {
			t.Errorf("%s is not the file of SHA256SUMS: run scripts/console-vendor", e.Name())
		}
		delete(listed, e.Name())
	}
	if len(listed) > 0 {
		t.Errorf("missing: %v", listed)
	}
	licences, err := os.ReadFile("web/vendor/LICENCES")
	if err != nil || strings.Count(string(licences), "Permission is hereby granted") < 4 ||
		!strings.Contains(string(licences), "Apache License") {
		t.Errorf("the licences are not complete: %v", err)
	}
}
