// Package ui is the console: a page for browsers at /ui/ and the files that it consists of, embedded. The page reads and does
// everything over the REST interface with the token of whoever looks, which it keeps in the browser's session storage; the files
// themselves are public and the same for everyone.
//
// The page may load scripts, styles and data from its own origin only, runs no inline script, and shows what programs and
// models wrote as text (Policy). Files have an address that contains a digest of all of them, and may be cached forever.
//
// It knows nothing of the daemon: who may ask, and what the interface answers, is package api's.
package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

//go:embed web/index.html web/*/*.js web/*/*.css web/*/*.svg
var files embed.FS

// Policy is the Content-Security-Policy of the page and of its files. Trusted Types have the browser refuse every write of markup by
// a script. Pictures and pages that calls made are shown from bytes that the page holds (blob:): a page in a frame without any right, whose
// own policy lets it load nothing, and which has this one, too. For the styles of such pages the policy of the page itself also has a nonce.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; frame-src blob:; connect-src 'self'; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// They stand in index.html where the digest and the nonce go.
const (
	pageVersion = "VERSION"
	pageNonce   = "NONCE"
)

var types = map[string]string{".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}

// A Console serves the files. Its methods may be called concurrently.
type Console struct {
	version string
	page    *file
	files   map[string]*file // by folder/name
	policy  string           // of the page
}

type file struct {
	kind, tag string
	plain     []byte
	packed    func() []byte // by gzip, made at the first request
}

// New reads the embedded files.
func New() (*Console, error) { return read(files) }

func read(from fs.FS) (*Console, error) {
	c := &Console{files: map[string]*file{}}
	all := sha256.New()
	err := fs.WalkDir(from, "web", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		name = strings.TrimPrefix(name, "web/")
		fmt.Fprintf(all, "%s %d ", name, len(data))
		_, _ = all.Write(data) // never fails (hash.Hash)
		c.files[name] = newFile(name, data)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the console's files: %w", err)
	}
	c.version = hex.EncodeToString(all.Sum(nil)[:8])
	page := c.files["index.html"]
	if page == nil {
		return nil, fmt.Errorf("read the console's files: there is no index.html")
	}
	delete(c.files, "index.html")
	nonce := rand.Text()
	c.page = newFile("index.html",
		bytes.ReplaceAll(bytes.ReplaceAll(page.plain, []byte(pageVersion), []byte(c.version)), []byte(pageNonce),
			[]byte(nonce)))
	c.policy = strings.Replace(Policy, "style-src 'self'", "style-src 'self' 'nonce-"+nonce+"'", 1)
	return c, nil
}

func newFile(name string, data []byte) *file {
	sum := sha256.Sum256(data)
	return &file{types[path.Ext(name)], hex.EncodeToString(sum[:8]), data,
		sync.OnceValue(func() []byte { return pack(data) })}
}

func pack(data []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is a valid one
	_, _ = z.Write(data)                                  // never fails (bytes.Buffer)
	_ = z.Close()
	return b.Bytes()
}

// ServePage answers with the page itself, which is asked for again each time.
func (c *Console) ServePage(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Security-Policy", c.policy)
	c.page.serve(w, r, "no-cache")
}

// ServeFile answers with a file, name being "folder/name", and reports whether there is one of that name and version. A page
// that an earlier binary served asks for an earlier version: it gets nothing rather than files that do not match.
func (c *Console) ServeFile(w http.ResponseWriter, r *http.Request, version, name string) bool {
	f := c.files[name]
	if f == nil || version != c.version {
		return false
	}
	w.Header().Set("Content-Security-Policy", Policy)
	f.serve(w, r, "public, max-age=31536000, immutable")
	return true
}

// serve answers conditional requests and ranges, too.
func (f *file) serve(w http.ResponseWriter, r *http.Request, caching string) {
	h := w.Header()
	h.Set("Cache-Control", caching)
	h.Set("Content-Type", f.kind)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Vary", "Accept-Encoding")
	h.Set("X-Content-Type-Options", "nosniff")
	data, tag := f.plain, f.tag
	if takesGzip(r.Header.Get("Accept-Encoding")) && len(f.packed()) < len(data) {
		data, tag = f.packed(), tag+"-gz"
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

// takesGzip reports whether an Accept-Encoding header lists gzip with another weight than 0.
func takesGzip(accepted string) bool {
	return slices.ContainsFunc(strings.Split(accepted, ","), func(one string) bool {
		coding, weight, _ := strings.Cut(strings.ReplaceAll(one, " ", ""), ";")
		return coding == "gzip" && strings.Trim(weight, "q=0.") != "" || coding == "gzip" && weight == ""
	})
}
