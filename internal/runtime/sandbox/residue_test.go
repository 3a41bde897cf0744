package sandbox

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// A spoiler changes a package's state in one of the ways that the policy permits.
type spoiler struct {
	name, imports, decls string
	probe                string // an expression that reveals the state
	change               string // statements
}

const (
	entity   = `len(xml.HTMLEntity)`
	closes   = `fmt.Sprint(xml.HTMLAutoClose)`
	encoded  = `base64.StdEncoding.EncodeToString([]byte{255, 255})`
	greek    = `unicode.Is(unicode.Greek, 'a')`
	checksum = `crc64.Checksum([]byte("abc"), crc64.MakeTable(crc64.ISO))`
)

var spoilers = []spoiler{
	{"alias of a pointer", "encoding/base64", "", encoded, `e := base64.StdEncoding; *e = *base64.URLEncoding`},
	{"alias of a map", "encoding/xml", "", entity, `m := xml.HTMLEntity; m["zz"] = "y"`},
	{"alias in a package variable", "encoding/xml", "var m = xml.HTMLEntity", entity, `m["zz"] = "y"`},
	{"decoding into a map", "encoding/xml encoding/json", "", entity,
		`m := xml.HTMLEntity; json.Unmarshal([]byte("{\"zz\":\"y\"}"), &m)`},
	{"decoding into a table", "encoding/json unicode", "", greek,
		`json.Unmarshal([]byte("{\"R16\":[{\"Lo\":97,\"Hi\":97,\"Stride\":1}]}"), unicode.Greek)`},
	{"decoding into a slice of tables", "encoding/json unicode", "", greek,
		`a := []*unicode.RangeTable{unicode.Greek}; json.Unmarshal([]byte("[{\"R16\":[{\"Lo\":97,\"Hi\":97,\"Stride\":1}]}]"), &a)`},
	{"decoding into a struct", "encoding/json unicode", "type S struct { T *unicode.RangeTable }", greek,
		`s := S{unicode.Greek}; json.Unmarshal([]byte("{\"T\":{\"R16\":[{\"Lo\":97,\"Hi\":97,\"Stride\":1}]}}"), &s)`},
	{"sort.Strings", "encoding/xml fmt sort", "", closes,
		`sort.Sort(sort.Reverse(sort.StringSlice(xml.HTMLAutoClose)))`},
	{"slices.SortFunc", "encoding/xml fmt slices strings", "", closes,
		`slices.SortFunc(xml.HTMLAutoClose, func(a, b string) int { return strings.Compare(b, a) })`},
	{"slices.Reverse", "encoding/xml fmt slices", "", closes, `slices.Reverse(xml.HTMLAutoClose)`},
	{"slices.Delete", "encoding/xml fmt slices", "", closes, `_ = slices.Delete(xml.HTMLAutoClose, 0, 1)`},
	{"append within the capacity", "encoding/xml fmt", "", closes, `_ = append(xml.HTMLAutoClose[:0], "x")`},
	{"copy", "encoding/xml fmt", "", closes, `a := xml.HTMLAutoClose; copy(a, []string{"x"})`},
	{"clear", "encoding/xml", "", entity, `m := xml.HTMLEntity; clear(m)`},
	{"delete", "encoding/xml", "", entity,
		`for _, m := range []map[string]string{xml.HTMLEntity} { delete(m, "nbsp") }`},
	{"maps.Copy", "encoding/xml maps", "", entity, `maps.Copy(xml.HTMLEntity, map[string]string{"zz": "y"})`},
	{"maps.DeleteFunc", "encoding/xml maps", "", entity,
		`maps.DeleteFunc(xml.HTMLEntity, func(k, _ string) bool { return k == "nbsp" })`},
	{"fmt.Sscan", "encoding/xml fmt", "", closes, `a := xml.HTMLAutoClose; fmt.Sscan("x", &a[0])`},
	{"parameter", "encoding/xml", `func put(m map[string]string) { m["zz"] = "y" }`, entity, `put(xml.HTMLEntity)`},
	{"variadic parameter", "encoding/xml fmt", `func put(a ...string) { a[0] = "y" }`, closes,
		`put(xml.HTMLAutoClose...)`},
	{"result", "encoding/xml", `func get() map[string]string { return xml.HTMLEntity }`, entity, `get()["zz"] = "y"`},
	{"closure", "encoding/xml", "", entity,
		`m := map[string]string{}; set := func() { m["zz"] = "y" }; m = xml.HTMLEntity; set()`},
	{"method value", "encoding/xml", `type M map[string]string; func (m M) put() { m["zz"] = "y" }`, entity,
		`f := M(xml.HTMLEntity).put; f()`},
	{"range variable", "unicode", "", greek,
		`for name, t := range unicode.Scripts { if name == "Greek" { t.R16 = append(t.R16, unicode.Range16{Lo: 'a', Hi: 'a', Stride: 1}); t.LatinOffset = 0; t.R16 = []unicode.Range16{{Lo: 'a', Hi: 'a', Stride: 1}} } }`},
	{"element of a map", "unicode", "", greek, `t := unicode.Scripts["Greek"]; *t = *unicode.Latin`},
	{"replaced element", "unicode", "", `unicode.Is(unicode.Scripts["Greek"], 'a')`,
		`m := unicode.Scripts; m["Greek"] = unicode.Latin`},
	{"field", "encoding/xml", `type S struct { m map[string]string }`, entity,
		`s := S{xml.HTMLEntity}; s.m["zz"] = "y"`},
	{"decoder", "encoding/xml strings", "", entity,
		`d := xml.NewDecoder(strings.NewReader("")); d.Entity = xml.HTMLEntity; d.Entity["zz"] = "y"`},
	{"decoding into a decoder", "encoding/xml encoding/json strings", "", entity,
		`d := xml.NewDecoder(strings.NewReader("")); d.Entity = xml.HTMLEntity; json.Unmarshal([]byte("{\"Entity\":{\"zz\":\"y\"}}"), d)`},
	{"embedded decoder", "encoding/xml strings", "type D struct { *xml.Decoder }", entity,
		`d := D{xml.NewDecoder(strings.NewReader(""))}; d.Decoder.Entity = xml.HTMLEntity; d.Entity["zz"] = "y"`},
	{"generic assignment", "encoding/base64", `func set[T any](p *T, v T) { *p = v }`, encoded,
		`set(base64.StdEncoding, *base64.URLEncoding)`},
	{"generic alias", "encoding/xml", `func same[T any](v T) T { return v }`, entity,
		`same(xml.HTMLEntity)["zz"] = "y"`},
	{"generic decoding", "encoding/json unicode",
		`func into[T any](v T) { json.Unmarshal([]byte("{\"R16\":[{\"Lo\":97,\"Hi\":97,\"Stride\":1}]}"), v) }`, greek,
		`into(unicode.Greek)`},
	{"assertion", "encoding/base64", "", encoded,
		`var x any = base64.StdEncoding; *x.(*base64.Encoding) = *base64.URLEncoding`},
	{"asserted table", "unicode", "", greek,
		`var x any = unicode.Greek; x.(*unicode.RangeTable).R16 = unicode.Latin.R16; x.(*unicode.RangeTable).LatinOffset = 1; *x.(*unicode.RangeTable) = *unicode.Latin`},
	{"other name of the type", "encoding/base64 errors",
		`type E base64.Encoding; func (E) Error() string { return "" }`, encoded,
		`errors.As(E(*base64.URLEncoding), (*E)(base64.StdEncoding))`},
	{"channel", "encoding/xml", "", entity,
		`c := make(chan map[string]string, 1); c <- xml.HTMLEntity; m := <-c; m["zz"] = "y"`},
	{"iterator", "unicode maps", "", greek,
		`for _, t := range maps.All(unicode.Scripts) { if t == unicode.Greek { *t = *unicode.Latin } }`},
	{"part of an element", "unicode fmt", "", `fmt.Sprint(unicode.CaseRanges[0].Delta)`,
		`d := unicode.CaseRanges[0].Delta[:]; d[0] = 7`},
	{"array behind a pointer", "hash/crc64", "", checksum,
		`t := crc64.MakeTable(crc64.ISO); for i := range t { t[i] = 7 }`},
	{"slice of an array", "hash/crc64", "", checksum, `t := crc64.MakeTable(crc64.ISO)[:]; clear(t)`},
	{"converted array", "hash/crc64", "", checksum, `t := (*[256]uint64)(crc64.MakeTable(crc64.ISO)); clear(t[:])`},
	{"binary.Decode", "hash/crc64 encoding/binary", "", checksum,
		`binary.Decode(make([]byte, 2048), binary.BigEndian, crc64.MakeTable(crc64.ISO))`},
	{"structure of a table", "unicode", "", greek,
		`t := (*struct { R16 []unicode.Range16; R32 []unicode.Range32; LatinOffset int })(unicode.Greek); *t = *(*struct { R16 []unicode.Range16; R32 []unicode.Range32; LatinOffset int })(unicode.Latin)`},
	{"location", "time", "", `time.Unix(0, 0).UTC().Location().String()`,
		`p := time.UTC; *p = *time.FixedZone("X", 3600)`},
	{"location of a time", "time", "", `time.Unix(0, 0).UTC().Location().String()`,
		`*time.Unix(0, 0).UTC().Location() = *time.FixedZone("X", 3600)`},
	{"compiled expression", "regexp regexp/syntax", "", `regexp.MustCompile("^(?s:.)$").MatchString("a")`,
		`r, _ := syntax.Parse("(?s:.)", syntax.Perl); p, _ := syntax.Compile(r); for _, i := range p.Inst { if i.Op == syntax.InstRuneAny || len(i.Rune) > 1 { i.Rune[1] = 0 } }`},
	{"printer that is kept", "fmt",
		"var kept fmt.State\ntype T struct{}\nfunc (T) Format(s fmt.State, r rune) { kept = s }", `fmt.Sprint("x")`,
		`_ = fmt.Sprint(T{}); kept.Write([]byte("leak"))`},
	{"printer in a closure", "fmt",
		"var kept func()\ntype T struct{}\nfunc (T) Format(s fmt.State, r rune) { kept = func() { s.Write([]byte(\"leak\")) } }", `fmt.Sprint("x")`, `_ = fmt.Sprint(T{}); kept()`},
	{"method value of a printer", "fmt",
		"var kept func([]byte) (int, error)\ntype T struct{}\nfunc (T) Format(s fmt.State, r rune) { kept = s.Write }",
		`fmt.Sprint("x")`, `_ = fmt.Sprint(T{}); kept([]byte("leak"))`},
	{"printer as a writer", "fmt io",
		"var kept io.Writer\ntype T struct{}\nfunc keep(w io.Writer) { kept = w }\nfunc (T) Format(s fmt.State, r rune) { keep(s) }", `fmt.Sprint("x")`, `_ = fmt.Sprint(T{}); kept.Write([]byte("leak"))`},
	{"printed before", "fmt strings",
		"var seen string\ntype W struct{}\nfunc (W) Write(p []byte) (int, error) { seen = string(p[len(p):cap(p)]); return len(p), nil }\nfunc look() int { fmt.Fprint(W{}, \"x\"); return strings.Count(seen, \"secret\") }", `look()`, `_ = fmt.Sprint("secret secret")`},
	{"encoded before", "encoding/json strings",
		"var seen string\ntype W struct{}\nfunc (W) Write(p []byte) (int, error) { seen = string(p[:30]); return len(p), nil }\nfunc look() int { json.NewEncoder(W{}).Encode(1); return strings.Count(seen, strings.ToLower(\"SECRET\")) }", `look()`, `_, _ = json.Marshal(strings.ToLower("A LONG TEXT AND A SECRET"))`},
	{"scanned before", "fmt strings",
		"var seen string\ntype T struct{}\nfunc (*T) Scan(s fmt.ScanState, r rune) error { b, err := s.Token(true, nil); seen = string(b[:cap(b)]); return err }\nfunc look() int { fmt.Sscan(\"x\", &T{}); return strings.Count(seen, \"secret\") }", `look()`, `var s string; fmt.Sscan("a_secret", &s)`},
	{"escapes of package xml", "encoding/xml strings",
		"type W struct{}\nfunc (W) Write(p []byte) (int, error) { if len(p) > 2 { p[2] = 'X' }; return len(p), nil }\nfunc look() string { var b strings.Builder; xml.EscapeText(&b, []byte(\"<\")); return b.String() }", `look()`, `xml.EscapeText(W{}, []byte("<"))`},
	{"lines of package pem", "encoding/pem",
		"type W struct{}\nfunc (W) Write(p []byte) (int, error) { clear(p); return len(p), nil }",
		`string(pem.EncodeToMemory(&pem.Block{Type: "A"}))`, `pem.Encode(W{}, &pem.Block{Type: "A"})`},
	{"the text null", "encoding/json strings",
		"type U string\nfunc (u *U) UnmarshalJSON(b []byte) error { *u = U(b); if *u == \"null\" { b[0] = 'N' }; return nil }\nfunc look() string { var x struct{ U U `json:\",string\"` }; json.Unmarshal([]byte(`{\"U\":null}`), &x); return string(x.U) }", `look()`, ``},
	{"buffer of readers", "io strings",
		"var seen string\ntype R struct{ s string }\nfunc (r R) Read(p []byte) (int, error) { seen = string(p); copy(p, r.s); return 0, io.EOF }\nfunc look() int { io.Copy(io.Discard, R{}); return strings.Count(seen, \"secret\") }", `look()`, `io.Copy(io.Discard, R{"secret"})`},
	{"token for what is no rune", "bufio strings",
		"func look() string { s := bufio.NewScanner(strings.NewReader(\"\\xff\")); s.Split(bufio.ScanRunes); s.Scan(); return s.Text() }", `look()`, `s := bufio.NewScanner(strings.NewReader("\xff")); s.Split(bufio.ScanRunes); s.Scan(); s.Bytes()[0] = 'x'`},
	{"splitting what is no rune", "bufio strings",
		"func look() string { s := bufio.NewScanner(strings.NewReader(\"\\xff\")); s.Split(bufio.ScanRunes); s.Scan(); return s.Text() }", `look()`, `_, t, _ := bufio.ScanRunes([]byte{255}, true); t[0] = 'x'`},
}

func (s spoiler) source() string {
	return manyImports(s.imports, s.decls+"\nfunc probe() any { return "+s.probe+" }",
		"before := probe()\n"+s.change+"\nreturn []any{before, probe()}, nil")
}

// manyImports returns a forged program with the imports, separated by spaces, the declarations and the body.
func manyImports(imports, decls, body string) string {
	text := "package tool\n\nimport \"recurgent\"\n"
	for _, i := range strings.Fields(imports) {
		text += fmt.Sprintf("import %q\n", i)
	}
	return text + decls + "\n\nfunc Run(call *recurgent.Call) (any, error) {\n" + body + "\n}\n"
}

// checked returns a runner's report on the source.
func checked(t *testing.T, p *Pool, source string) *wire.Checked {
	t.Helper()
	r, failure := p.takeBlank(t.Context())
	if failure != nil {
		t.Fatal(failure)
	}
	defer r.kill("checked")
	c, failure := r.check(t.Context(), source, time.Now().Add(loadTimeout))
	if failure != nil {
		t.Fatal(failure)
	}
	return c
}

// A run's changes of packages do not reach the next run: the process of such a program serves one call.
func TestNothingPassesToTheNextRun(t *testing.T) {
	p := compilePool(t, nil)
	for i, s := range spoilers {
		t.Run(s.name, func(t *testing.T) {
			if c := checked(t, p, s.source()); !strings.Contains(c.Text, "Once: true") {
				t.Errorf("a process of the compiled program would run more than once: %+v", c)
			}
			if testing.Short() && i%12 != 0 {
				return // it is compiled like others
			}
			req := request(s.source())
			req.Program.Checksum = s.name
			first, second := p.Run(t.Context(), req, &fakeHost{}), p.Run(t.Context(), req, &fakeHost{})
			var seen [2]any
			if err := json.Unmarshal(first.Value, &seen); err != nil {
				t.Fatalf("%s: %v", said(first), err)
			}
			if seen[0] == seen[1] && !wire.RaceBuild { // pools of race builds drop some of their items
				t.Errorf("nothing was changed: %s", said(first))
			}
			if said(first) != said(second) {
				t.Errorf("the second run sees the first: %s, then %s", said(first), said(second))
			}
		})
	}
}

// The usual ways to use package variables change nothing, so their runners stay warm.
func TestReadersStayWarm(t *testing.T) {
	p := compilePool(t, nil)
	for i, body := range []string{
		`d := xml.NewDecoder(strings.NewReader("<p>&nbsp;<br></p>")); d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity; _, err := d.Token(); return nil, err`,
		`enc := base64.StdEncoding; if call == nil { enc = base64.URLEncoding }; return enc.EncodeToString([]byte("a")), nil`,
		`for _, t := range []*unicode.RangeTable{unicode.Han, unicode.Latin} { if unicode.Is(t, 'a') { return true, nil } }; return unicode.In('a', unicode.Scripts["Greek"]), nil`,
	} {
		req := request(manyImports("encoding/xml encoding/base64 strings unicode", "", body))
		req.Program.Checksum = fmt.Sprint(i)
		first, second := p.Run(t.Context(), req, &fakeHost{}), p.Run(t.Context(), req, &fakeHost{})
		if first.Failure != nil || said(first) != said(second) || second.Timing.Gate != 0 {
			t.Errorf("%s: %s, then %s in %+v", body, said(first), said(second), second.Timing)
		}
	}
}
