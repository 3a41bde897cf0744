// Package ui serves the console: a page for browsers at /ui/ and its files, embedded in the binary. The page does
// everything through the REST interface with the user's token, which it keeps in the browser's session storage. The
// files themselves are public and the same for everyone.
//
// The page may load scripts, styles and data only from its own origin. It runs no inline scripts, and shows output of
// programs and models as text (Policy). The URL of each file contains a digest of all files, so browsers may cache
// files forever.
//
// The package knows nothing of the daemon. Package api decides who may send requests, and answers them.
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

// Policy is the Content-Security-Policy of the page and its files. Trusted Types make the browser reject any markup
// that a script writes. Images and pages made by calls are shown from bytes that the page holds (blob:). Such a page is
// in a sandboxed frame without permissions; its own policy forbids it to load anything, and this policy applies as
// well. For the styles of such pages, the policy of the console's page also has a nonce.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; frame-src blob:; connect-src 'self'; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Placeholders in index.html for the digest and the nonce.
const (
	pageVersion = "VERSION"
	pageNonce   = "NONCE"
)

// types are the content types by file extension.
var types = map[string]string{".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}

// A Console serves the files. Its methods may be called concurrently.
type Console struct {
	version string // digest of all files, as part of their URLs
	page    *file
	files   map[string]*file // by folder/name, without the page
	policy  string           // of the page, with the nonce
}

type file struct {
	kind, tag string // content type and ETag, without quotes
	plain     []byte
	packed    func() []byte // compressed with gzip on the first request
}

// New returns a Console for the embedded files.
func New() (*Console, error) { return read(files) }

// read loads the files below web/. The page and its policy share one nonce for the life of the Console.
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
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = z.Write(data)                                  // never fails (bytes.Buffer)
	_ = z.Close()
	return b.Bytes()
}

// ServePage responds with the page. Browsers revalidate it each time.
func (c *Console) ServePage(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Security-Policy", c.policy)
	c.page.serve(w, r, "no-cache")
}

// ServeFile responds with a file, if it exists in that version; otherwise it writes nothing and returns false. name is
// "folder/name". A page from an earlier binary requests an earlier version: it gets no file rather than one that does
// not match.
func (c *Console) ServeFile(w http.ResponseWriter, r *http.Request, version, name string) bool {
	f := c.files[name]
	if f == nil || version != c.version {
		return false
	}
	w.Header().Set("Content-Security-Policy", Policy)
	f.serve(w, r, "public, max-age=31536000, immutable")
	return true
}

// serve handles conditional requests and ranges as well.
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

// takesGzip reports whether an Accept-Encoding header lists gzip with a weight other than 0.
func takesGzip(accepted string) bool {
	return slices.ContainsFunc(strings.Split(accepted, ","), func(one string) bool {
		coding, weight, _ := strings.Cut(strings.ReplaceAll(one, " ", ""), ";")
		return coding == "gzip" && strings.Trim(weight, "q=0.") != "" || coding == "gzip" && weight == ""
	})
}
