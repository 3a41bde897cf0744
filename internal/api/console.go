package api

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// home redirects browsers to the console. Other clients get the reply for a path that does not exist.
func (s *server) home(w *reply, r *http.Request) error {
	w.Header().Add("Vary", "Accept")
	if !wantsPage(r) {
		return s.noRoute(w, r)
	}
	return s.toConsole(w, r)
}

// toConsole redirects to a relative URL, which stays valid below the path of a proxy.
func (s *server) toConsole(w *reply, _ *http.Request) error {
	w.Header().Set("Location", "ui/")
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

// wantsPage reports whether the Accept header lists text/html explicitly. Browsers list it, programs do not.
func wantsPage(r *http.Request) bool {
	for one := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		if media, params, err := mime.ParseMediaType(one); err == nil && media == "text/html" && params["q"] != "0" {
			return true
		}
	}
	return false
}

// consolePage serves the page of the console. It needs no token: the page asks for one.
func (s *server) consolePage(w *reply, r *http.Request) error {
	s.console.ServePage(w, r)
	return nil
}

// consoleFile serves a file of the console. Its path contains a version, since a page of another version may ask for
// it.
func (s *server) consoleFile(w *reply, r *http.Request) error {
	if !s.console.ServeFile(w, r, param(r, "version"), param(r, "folder")+"/"+param(r, "file")) {
		return fault(codeNotFound, "the console has no such file",
			"load /ui/ again: this daemon may be another version than the one that served the page")
	}
	return nil
}

//go:embed docspage.html.tmpl
var docsTemplate string

//go:embed docspage.css
var docsStyle string

// The parts of the OpenAPI document that the reference page shows.
type (
	docsDocument struct {
		Info struct {
			Title       string `yaml:"title"`
			Description string `yaml:"description"`
		} `yaml:"info"`
		Tags  []docsTag                       `yaml:"tags"`
		Paths map[string]map[string]yaml.Node `yaml:"paths"`
	}
	docsTag struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description"`
		Operations  []docsOperation
	}
	docsOperation struct {
		ID          string   `yaml:"operationId"`
		Tags        []string `yaml:"tags"`
		Summary     string   `yaml:"summary"`
		Description string   `yaml:"description"`
		Body        struct {
			Content map[string]docsContent `yaml:"content"`
		} `yaml:"requestBody"`
		Responses map[string]struct {
			Description string                 `yaml:"description"`
			Content     map[string]docsContent `yaml:"content"`
		} `yaml:"responses"`
		Method, Path string
	}
	docsContent struct {
		Examples map[string]struct {
			Value yaml.Node `yaml:"value"`
		} `yaml:"examples"`
	}
)

// A docsPage is the OpenAPI document as one HTML page without scripts, and the content security policy that it is
// served with.
type docsPage struct {
	html   []byte
	policy string
}

// newDocsPage renders the page. It returns an error if the document cannot be parsed.
func newDocsPage(openAPI []byte) (page docsPage, err error) {
	var doc docsDocument
	if err := yaml.Unmarshal(openAPI, &doc); err != nil {
		return page, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	for path, methods := range doc.Paths {
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			node, there := methods[method]
			if !there {
				continue
			}
			op := docsOperation{Method: strings.ToUpper(method), Path: path}
			if err := node.Decode(&op); err != nil {
				return page, fmt.Errorf("read %s %s of the OpenAPI document: %w", method, path, err)
			}
			if i := slices.IndexFunc(doc.Tags,
				func(t docsTag) bool { return slices.Contains(op.Tags, t.Name) }); i >= 0 {
				doc.Tags[i].Operations = append(doc.Tags[i].Operations, op)
			}
		}
	}
	for _, tag := range doc.Tags {
		slices.SortFunc(tag.Operations, func(a, b docsOperation) int {
			return strings.Compare(a.Path+" "+a.Method,
				b.Path+" "+b.Method)
		})
	}
	t, err := template.New("docs").Funcs(template.FuncMap{"example": docsExample}).Parse(docsTemplate)
	if err != nil {
		return page, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, struct {
		docsDocument
		Style template.CSS
	}{doc, template.CSS(docsStyle)}); err != nil {
		return page, err
	}
	// the policy allows the page's own style by its hash, and nothing else
	sum := sha256.Sum256([]byte(docsStyle))
	page.html, page.policy = b.Bytes(), "default-src 'none'; style-src 'sha256-"+
		base64.StdEncoding.EncodeToString(sum[:])+"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	return page, nil
}

// docsExample returns the first JSON example of the content by name, or "" if there is none.
func docsExample(content map[string]docsContent) string {
	for _, media := range []string{"application/json", "application/merge-patch+json"} {
		examples := content[media].Examples
		names := make([]string, 0, len(examples))
		for name := range examples {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			value := examples[name].Value
			text, err := yaml.Marshal(&value) // keeps the document's notation, which is JSON
			if err == nil && len(text) > 0 {
				return strings.TrimSpace(string(text))
			}
		}
	}
	return ""
}

// getDocs serves the reference page. It needs no token.
func (s *server) getDocs(w *reply, _ *http.Request) error {
	page, err := s.docs()
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", page.policy)
	h.Set("Content-Length", strconv.Itoa(len(page.html)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(page.html) // a write fails only when the client has gone
	return nil
}
