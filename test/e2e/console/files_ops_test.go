//go:build ops

package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// stored uploads a file to the session and returns its reference.
func stored(d *rig.Daemon, session, name, kind string, data []byte) object {
	d.T.Helper()
	// not by the client of the rig, which reads what it sends
	r, err := http.Post(d.URL+"/v1/files?session_id="+session+"&name="+url.QueryEscape(name), kind,
		bytes.NewReader(data))
	if err != nil {
		d.T.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	var file struct{ ID string }
	if err := json.NewDecoder(r.Body).Decode(&file); err != nil || r.StatusCode != http.StatusCreated {
		d.T.Fatalf("%s: %d %v", name, r.StatusCode, err)
	}
	return object{"$file": file.ID}
}

// A watched is a web server that nothing may connect to.
type watched struct {
	*httptest.Server
	asked atomic.Int64
}

func watch(t *testing.T) *watched {
	t.Helper()
	w := &watched{}
	w.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter,
		r *http.Request) {
		t.Errorf("somebody asked for %s", r.URL)
	}))
	w.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			w.asked.Add(1)
		}
	}
	w.Start()
	t.Cleanup(w.Close)
	return w
}

// faultless is clean without a look at the requests of frames, which the policy refuses: the server that they are for
// sees that none came.
func (p *page) faultless() {
	p.t.Helper()
	for _, fault := range p.do("faults").([]any) {
		p.t.Errorf("the page %s: %v", p.name, fault)
	}
}

// until waits for an expression to hold in the page. Playwright's waitForFunction would evaluate it there, which the
// policy refuses.
func (p *page) until(holds string) {
	p.t.Helper()
	p.do("evaluate", "(async () => { for (const end = Date.now() + 40000; !("+holds+
		"); await new Promise((f) => setTimeout(f, 20))) if (Date.now() > end) throw new Error('it never held'); })()")
}

// hostilePage has every way that a page has to run something or to have something loaded.
const hostilePage = `<!doctype html><html onload="parent.canary()"><head><title>x</title><base href="%[1]s"><meta http-equiv="refresh" content="0;url=%[1]s/refresh">
<link rel="stylesheet" href="%[1]s/sheet"><link rel="preconnect" href="%[1]s"><LINK rel=dns-prefetch href="%[1]s"><link rel="preload" as="image" href="%[1]s/preload"><link rel="prefetch" href="%[1]s/prefetch">
<style>@import url("%[1]s/import"); body { background: url("%[1]s/background") }</style><script src="%[1]s/script"></script><script>parent.canary(); top.location = "%[1]s/top"; fetch("%[1]s/fetch")</script></head>
<body background="%[1]s/body"><h1>Quarterly report</h1><img src="%[1]s/img" srcset="%[1]s/set 2x" onerror="parent.canary()"><img src=x onerror="parent.canary()"><p style="background: url('%[1]s/style')">styled</p>
<style>.seen { display: none } @font-face { font-family: f; src: url("%[1]s/font") } h1 { font-family: f; cursor: url("%[1]s/cursor"), auto; list-style: url("%[1]s/list") } h1::after { content: url("%[1]s/content") } @import "%[1]s/import2";</style>
<b class="seen">hidden by a sheet</b><b style="display: none">hidden by an attribute</b><b id="i" class="seen" style="display: inline">shown by an attribute</b>
<video src="%[1]s/video" poster="%[1]s/poster" autoplay></video><audio src="%[1]s/audio" autoplay></audio><iframe src="%[1]s/frame"></iframe><object data="%[1]s/object"></object><embed src="%[1]s/embed">
<input type="image" src="%[1]s/button"><svg><image href="%[1]s/svg"/><script>parent.canary()</script></svg><form action="%[1]s/form" method="post"><input autofocus onfocus="parent.canary()"><button>Send</button></form>
<a href="%[1]s/link" ping="%[1]s/ping">Go on</a> <a href="%[1]s/blank" target="_blank">Further</a> <a href="%[1]s/up" target="_top">Up</a> <a href="javascript:parent.canary()">Run</a></body></html>`

const hostileDrawing = `<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" width="60" height="40" onload="parent.canary()"><script>parent.canary()</script><style>@import url("%[1]s/import");</style>
<image href="%[1]s/image" width="10" height="10"/><foreignObject><img xmlns="http://www.w3.org/1999/xhtml" src="%[1]s/foreign" onerror="parent.canary()"/></foreignObject><rect width="60" height="40" fill="green"/></svg>`

func pageAt(w *watched) string    { return fmt.Sprintf(hostilePage, w.URL) }
func drawingAt(w *watched) []byte { return fmt.Appendf(nil, hostileDrawing, w.URL) }

// Each result is shown by its kind: tables, pages, drawings, pictures and texts. A page and a drawing of somebody else
// run nothing, load nothing and lead nowhere.
func TestOpsFilesOfResults(t *testing.T) {
	m := rig.NewModel(t, rig.Script{})
	m.Otherwise(rig.ProgEcho)
	d := rig.Start(t, m)
	s, outside := d.Session("report"), watch(t)
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 30, 20))); err != nil {
		t.Fatal(err)
	}
	latin := []byte("Stadt;Umsatz\nM\xfcnchen;\"1;5\"\n<b>Ulm</b>;2\n")
	call := d.Call(s, "make", object{
		"table":   stored(d, s, "Umsatz.csv", "text/csv", latin),
		"page":    stored(d, s, "report.html", "text/html", []byte(pageAt(outside))),
		"drawing": stored(d, s, "chart.svg", "image/svg+xml", drawingAt(outside)),
		"picture": stored(d, s, "dot.png", "image/png", picture.Bytes()),
		"text":    stored(d, s, "notes.txt", "text/plain", []byte("one\n  <i>two</i>\n")),
		"archive": stored(d, s, "all.zip", "application/zip", []byte("PK"))})
	b := newBrowser(t)
	p := b.open(t, "one", d.URL, nil)
	p.at("#/calls/" + call.CallID)
	files := "section:has(h2:text-is('Outcome')) ul.files"
	for _, name := range []string{"Umsatz.csv", "report.html", "chart.svg", "dot.png", "notes.txt"} {
		p.click(files + " >> " + button("Show "+name))
	}
	p.lacks(files + " >> " + button("Show all.zip"))
	p.sees(files+" >> th:text-is('Umsatz')", files+" >> td:text-is('München')", files+" >> td:text-is('1;5')",
		files+" >> td:text-is('<b>Ulm</b>')", files+" >> pre:has-text('<i>two</i>')",
		files+" >> "+button("Download all.zip"))
	const frame = "iframe >> internal:control=enter-frame >> "
	p.sees(frame + "h1:text-is('Quarterly report')")
	p.sees(frame + "text=shown by an attribute")
	p.lacks(frame + "text=hidden by a sheet")
	p.lacks(frame + "text=hidden by an attribute")
	if rights := p.do("evaluate", "document.querySelector('iframe').getAttribute('sandbox')"); rights != "" {
		t.Errorf("the frame has the rights %q", rights)
	}
	for _, name := range []string{"chart.svg", "dot.png"} {
		p.until("document.querySelector('img[alt=\"" + name + "\"]')?.naturalWidth >= 30")
	}
	for name, data := range map[string][]byte{"Umsatz.csv": latin, "report.html": []byte(pageAt(outside)),
		"dot.png": picture.Bytes(), "all.zip": []byte("PK")} { // as they are stored, not as they are shown
		p.downloads(files+" >> "+button("Download "+name), name, data)
	}
	p.accessible("a call with files")
	p.do("screenshot", map[string]any{"path": shots(t) + "/files.png", "fullPage": true})
	p.faultless()
	for _, link := range []string{"Further", "Up", "Run", "Go on", "Send"} {
		p.click(frame + "text=" + link)
	}
	if at, _ := p.do("evaluate", "location.href").(string); at != d.URL+"/ui/#/calls/"+call.CallID {
		t.Errorf("a link of the page led to %s", at)
	}
	if n := outside.asked.Load(); n > 0 {
		t.Errorf("%d connections were made to where the page points", n)
	}
	if sang, _ := p.do("evaluate",
		"window.violations.filter((v) => v.includes('canary')).join()").(string); sang != "" {
		t.Errorf("the page ran a script: %s", sang)
	}
}

// A text is shown as text, with its lines, and as what it looks like; one with characters that are not seen as JSON. It
// can be saved.
func TestOpsTextResults(t *testing.T) {
	m := rig.NewModel(t, rig.Script{})
	m.Otherwise(rig.Program("\treturn call.Arg(0, \"text\"), nil"))
	d := rig.Start(t, m)
	s, outside := d.Session("texts"), watch(t)
	p := newBrowser(t).open(t, "one", d.URL, nil)
	shown := func(value string) string {
		t.Helper()
		p.at("#/calls/" + d.Call(s, "echo", value).CallID)
		p.sees("pre[aria-label=Value]")
		text, _ := p.do("innerText", "pre[aria-label=Value]").(string)
		return text
	}
	for value, want := range map[string]string{"one": "one", "one\n\ttwo \"2\"\n": "one\n\ttwo \"2\"\n",
		"a\x00b": `"a\u0000b"`, "<b>x</b>": "<b>x</b>"} {
		if got := shown(value); strings.TrimRight(got, "\n") != strings.TrimRight(want, "\n") {
			t.Errorf("%q is shown as %q", value, got)
		}
	}
	shown("city,n\nUlm,2\n")
	p.downloads(button("Download the value"), "echo.csv", []byte("city,n\nUlm,2\n"))
	p.click(button("As a table"))
	p.sees("td:text-is('Ulm')")
	shown(pageAt(outside))
	p.click(button("As a page"))
	p.sees("iframe >> internal:control=enter-frame >> h1:text-is('Quarterly report')")
	shown(string(drawingAt(outside)))
	p.click(button("As a picture"))
	p.until("document.querySelector('img.picture')?.naturalWidth === 60")
	p.faultless()
	if n := outside.asked.Load(); n > 0 {
		t.Errorf("%d connections were made to where the texts point", n)
	}
}

// A file is chosen for a call, or dropped on its form, and stands in the arguments as a reference; the result's file is
// saved byte by byte.
func TestOpsFilesForCalls(t *testing.T) {
	m := rig.NewModel(t, rig.Script{"files.echo": {rig.ProgEcho},
		"files.read": {rig.Program(
			"\tin, err := call.Open(call.Arg(0, \"in\"))\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tdata, err := io.ReadAll(in)\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tout, err := call.Create(\"copy.txt\", \"text/plain\")\n\t"+
				"if err != nil {\n\t\treturn nil, err\n\t}\n\tfmt.Fprintf(out, \"%s!\", data)\n\treturn out.Ref(), out.Close()",
			"fmt", "io")}})
	d := rig.Start(t, m)
	s := d.Session("files")
	p := newBrowser(t).open(t, "one", d.URL, nil)
	p.at("#/sessions/" + s)
	p.fill("label:has-text('Method') input", "read")
	p.do("setInputFiles", "form.talk input[type=file]", rig.WriteFile(t, "in.txt", "chosen"))
	p.sees(button("Attach a file"))
	p.until("document.querySelector('label.grow input').value.startsWith('{\"$file\":\"file_')")
	p.click(button("Call"))
	p.sees(".reply pre:has-text('chosen!')")
	p.downloads(".reply >> "+button("Download copy.txt"), "copy.txt", []byte("chosen!"))
	p.accessible("a form with a file")

	// A text needs no quotes, unless it might be several.
	p.fill("label:has-text('Method') input", "echo")
	p.fill("label.grow input", "one, two")
	p.click(button("Call"))
	p.sees("text=Arguments are JSON values")
	p.fill("label.grow input", "one text")
	p.click(button("Call"))
	p.sees(".reply pre:has-text('\"one text\"')")
	p.fill("label:has-text('Method') input", "read")

	p.fill("label.grow input", "")
	p.do("evaluate", `(() => {
		const files = new DataTransfer();
		files.items.add(new File(['dropped'], 'drop me.txt', { type: 'text/plain' }));
		for (const kind of ['dragover', 'drop']) document.querySelector('form.talk').dispatchEvent(new DragEvent(kind, { dataTransfer: files, bubbles: true, cancelable: true }));
	})()`)
	p.until("document.querySelector('label.grow input').value.startsWith('{\"$file\":\"file_')")
	p.click(button("Call"))
	p.sees(".reply pre:has-text('dropped!')")
	if list := d.Get("/v1/files")["data"].([]any); len(list) != 4 {
		t.Errorf("%d files are kept, want two that came and two that were made", len(list))
	}
	p.clean()
}
