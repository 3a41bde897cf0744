//go:build ops

package console

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// packages are those of internal/ui/package-lock.json.
func packages(t *testing.T) string {
	t.Helper()
	dir := rig.Root() + "/.cache/npm-console"
	if _, err := os.Stat(dir + "/node_modules"); err != nil {
		t.Fatalf("%v: run scripts/ops-install console", err)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// A browser is a Chromium, or a Firefox, that testdata/driver.mjs drives by playwright-core.
type browser struct {
	in  io.WriteCloser
	out *bufio.Reader
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	return newBrowserOf(t, "chromium")
}

// newBrowserOf starts a browser by the name of its program, which is that of what scripts/ops-install installs, too.
func newBrowserOf(t *testing.T, name string) *browser {
	t.Helper()
	program, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%v: run scripts/ops-install %s", err, name)
	}
	home := t.TempDir()
	cmd := exec.Command("node", "testdata/driver.mjs", packages(t), program)
	cmd.Env = append(os.Environ(), "HOME="+home)
	var said strings.Builder
	cmd.Stderr = &said
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // its end
		late := time.AfterFunc(rig.Patience, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the driver ended in %v\n%s", err, said.String())
		}
	})
	return &browser{in, bufio.NewReader(out)}
}

// A page is a tab with storage of its own.
type page struct {
	t    *testing.T
	b    *browser
	name string
	url  string // of the daemon
}

// open opens a tab; options are those of playwright's newContext.
func (b *browser) open(t *testing.T, name, url string, options map[string]any) *page {
	t.Helper()
	p := &page{t, b, name, url}
	p.do("open", options)
	return p
}

// another opens a tab of the same browser beside the page; of open's each is in one of its own.
func (p *page) another(name string) *page {
	p.t.Helper()
	q := &page{p.t, p.b, name, p.url}
	q.do("another", p.name)
	return q
}

func (p *page) try(call string, args ...any) (any, error) {
	if args == nil {
		args = []any{}
	}
	line, err := json.Marshal(map[string]any{"page": p.name, "call": call, "args": args})
	if err != nil {
		return nil, err
	}
	if _, err := p.b.in.Write(append(line, '\n')); err != nil {
		return nil, err
	}
	answer, err := p.b.out.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	var reply struct {
		Value any
		Error string
	}
	if err := json.Unmarshal(answer, &reply); err != nil {
		return nil, err
	}
	if reply.Error != "" {
		return nil, fmt.Errorf("%s %v: %s", call, args, reply.Error)
	}
	return reply.Value, nil
}

// do calls a method of playwright's page.
func (p *page) do(call string, args ...any) any {
	p.t.Helper()
	v, err := p.try(call, args...)
	if err != nil {
		if text, err := p.try("innerText", "body"); err == nil {
			p.t.Logf("the page %s shows:\n%s", p.name, text)
		}
		p.t.Fatal(err)
	}
	return v
}

// at leads to an address of the console, as a link would that somebody sent.
func (p *page) at(hash string) {
	p.t.Helper()
	p.do("goto", "about:blank")
	p.do("goto", p.url+"/ui/"+hash)
	p.sees("h1")
	p.heard()
}

// heard waits until the page hears keys and watches the focus, which may be later than it shows something.
func (p *page) heard() {
	p.t.Helper()
	p.do("evaluate", "Promise.all(['keys.js', 'focus.js'].map((f) => import(document.querySelector('script').src.replace('main.js', f)))).then(() => null)")
}

// sees waits until the page shows what a selector names.
func (p *page) sees(selectors ...string) {
	p.t.Helper()
	for _, s := range selectors {
		p.do("waitForSelector", s)
	}
}

// gone waits until the page does not show any more what a selector names.
func (p *page) gone(selector string) {
	p.t.Helper()
	p.do("waitForSelector", selector, map[string]any{"state": "detached"})
}

// lacks reports it when the page shows what a selector names.
func (p *page) lacks(selector string) {
	p.t.Helper()
	if seen, _ := p.do("isVisible", selector).(bool); seen {
		p.t.Errorf("the page %s shows %s", p.name, selector)
	}
}

// settled waits until nothing of the page is being loaded.
func (p *page) settled() {
	p.t.Helper()
	p.do("waitForLoadState", "load")
	p.gone("main >> text=Loading …")
	p.gone("[aria-busy=true]")
	p.heard()
}

func (p *page) click(selector string)      { p.t.Helper(); p.do("click", selector) }
func (p *page) fill(selector, text string) { p.t.Helper(); p.do("fill", selector, text) }

// downloads clicks an element that downloads a file, and compares the file's name and bytes.
func (p *page) downloads(selector, name string, data []byte) {
	p.t.Helper()
	file, _ := p.do("download", selector).([]any)
	if want := []any{name, base64.StdEncoding.EncodeToString(data)}; !slices.Equal(file, want) {
		p.t.Errorf("%s downloads %v, want %v", selector, file, want)
	}
}

// clean reports what must not have happened: exceptions, violations of the policy, scripts of others, requests
// elsewhere.
func (p *page) clean() {
	p.t.Helper()
	for _, fault := range p.do("faults").([]any) {
		p.t.Errorf("the page %s: %v", p.name, fault)
	}
	for _, host := range p.do("hosts").([]any) {
		if h := host.(string); h != "" && !strings.HasSuffix(p.url, "//"+h) {
			p.t.Errorf("the page %s asked %s", p.name, h)
		}
	}
}

// accessible reports the violations that axe-core finds.
func (p *page) accessible(what string) {
	p.t.Helper()
	for _, v := range p.do("axe").([]any) {
		p.t.Errorf("%s: %v", what, v)
	}
}

// button selects a button by its name.
func button(name string) string { return `role=button[name="` + name + `"]` }
