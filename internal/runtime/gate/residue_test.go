package gate

import (
	"go/types"
	"slices"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/allow"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/std"
)

// Programs that only read the state of other packages leave nothing in it.
func TestNoResidue(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	for _, c := range []struct{ imports, decls, body string }{
		{"time", "", `loc := time.UTC; t := time.Now().In(loc); _ = t; if t.Location() == time.Local { loc = nil }`},
		{"time", "type T struct { at *time.Time }",
			`t := T{new(time.Time)}; *t.at = time.Now(); zone, err := time.LoadLocation("UTC"); _, _ = zone, err`},
		{"time", "type Day time.Time\nfunc (d *Day) set(t time.Time) { *d = Day(t) }",
			`var d Day; d.set(time.Now().In(time.UTC))`},
		{"encoding/base64", "var encodings = map[string]*base64.Encoding{\"std\": base64.StdEncoding}",
			`for name, e := range encodings { _, _ = name, e.WithPadding(base64.NoPadding) }`},
		{"", "func set[T any](p *T, v T) { *p = v }", `n := 0; set(&n, 1)`},
		{"encoding/base64", "func set[T any](p *T, v T) { *p = v }",
			`n := 0; set(&n, len(base64.StdEncoding.EncodeToString(nil)))`},
		{"unicode", "", `r := 'x'; _ = unicode.Is(unicode.Han, r) || unicode.In(r, unicode.Latin, unicode.Greek) || unicode.In(r, unicode.GraphicRanges...)`},
		{"unicode", "", `t, ok := unicode.Scripts["Greek"]; _ = ok && unicode.Is(t, 'x'); for name, t := range unicode.Scripts { if unicode.Is(t, 'x') { _ = name } }`},
		{"unicode", "", `_ = len(unicode.Categories) + len(unicode.CaseRanges); r := unicode.CaseRanges[1]; r.Delta[0] = 5; _ = unicode.TurkishCase.ToUpper('i')`},
		{"unicode", "type script struct { name string; table *unicode.RangeTable }\nvar scripts = []script{{\"a\", unicode.Han}, {name: \"b\", table: unicode.Latin}}\nfunc find(name string) (*unicode.RangeTable, bool) { for _, s := range scripts { if s.name == name { return s.table, true } }; return nil, false }",
			`if t, ok := find("a"); ok { _ = unicode.Is(t, 'x') }; scripts = append(scripts, script{"c", unicode.Greek})`},
		{"unicode slices maps", "",
			`own := map[string]*unicode.RangeTable{"a": unicode.Han}; for _, k := range slices.Sorted(maps.Keys(own)) { _ = own[k] }; _ = slices.Clone(unicode.GraphicRanges)`},
		{"unicode", "", `t := &unicode.RangeTable{R16: []unicode.Range16{{Lo: 1, Hi: 2, Stride: 1}}}; for _, in := range []*unicode.RangeTable{t, {R16: nil}} { _ = unicode.Is(in, 'x') }`},
		{"unicode strings", "", `_ = strings.FieldsFunc("a b", func(r rune) bool { return !unicode.In(r, unicode.L, unicode.N) }); _ = strings.ToUpperSpecial(unicode.TurkishCase, "i")`},
		{"hash/crc32 hash/crc64", "var table = crc64.MakeTable(crc64.ECMA)",
			`_ = crc64.Checksum(nil, table); _ = crc32.Checksum(nil, crc32.IEEETable); h := crc32.New(crc32.MakeTable(crc32.Castagnoli)); h.Write(nil)`},
		{"encoding/xml strings", "func text(d *xml.Decoder) (string, error) { t, err := d.Token(); if c, ok := t.(xml.CharData); ok { return string(c), nil }; return \"\", err }",
			`d := xml.NewDecoder(strings.NewReader("")); d.Strict = false; d.AutoClose = xml.HTMLAutoClose; d.Entity = xml.HTMLEntity; _, _ = text(d)`},
		{"encoding/xml strings slices maps fmt", "",
			`_ = strings.Join(xml.HTMLAutoClose, ",") + xml.HTMLEntity["amp"] + fmt.Sprint(len(xml.HTMLEntity)); for k, v := range xml.HTMLEntity { _, _ = k, v }; _ = slices.Contains(xml.HTMLAutoClose, "br"); _ = slices.Sorted(maps.Keys(xml.HTMLEntity)); m := maps.Clone(xml.HTMLEntity); m["a"] = "b"`},
		{"io fmt errors", "", `fmt.Fprintln(io.Discard, "x"); _ = io.MultiWriter(io.Discard); err := io.EOF; _ = errors.Is(err, io.ErrUnexpectedEOF); var x any = io.EOF; _ = x`},
		{"fmt strings", "type P struct{ x, y int }\nfunc (p P) Format(s fmt.State, verb rune) { if s.Flag('+') { fmt.Fprintf(s, \"%d\", p.x); p.rest(s, verb); return }; defer s.Write([]byte(\"!\")); w, ok := s.Width(); fmt.Fprint(s, w, ok) }\nfunc (p P) rest(s fmt.State, verb rune) { fmt.Fprintf(s, fmt.FormatString(s, verb), p.y) }",
			`_ = fmt.Sprintf("%+v", P{1, 2})`},
		{"fmt", "type N int\nfunc (n *N) Scan(s fmt.ScanState, verb rune) error { s.SkipSpace(); _, err := fmt.Fscan(s, (*int)(n)); return err }", `var n N; fmt.Sscan("5", &n)`},
		{"encoding/json strings bytes strconv",
			"type D string\nfunc (d *D) UnmarshalJSON(b []byte) error { if len(b) > 1 && b[0] == '\"' { s, err := strconv.Unquote(string(b)); *d = D(s); return err }; if bytes.Equal(b, []byte(\"null\")) { return nil }; *d = D(bytes.Trim(b[1:len(b)-1], \" \")); var n float64; return json.Unmarshal(b, &n) }",
			`var d D; _ = json.Unmarshal([]byte("1"), &d)`},
		{"fmt strings bytes io",
			"type up struct{ io.Writer; n int; all []byte }\nfunc (u *up) Write(p []byte) (int, error) { u.n += len(p); u.all = append(u.all, p...); for _, c := range p { _ = c }; if len(p) > 1 && p[0] == 'x' { return u.Writer.Write(p[1:]) }; return u.Writer.Write(bytes.ToUpper(p)) }",
			`fmt.Fprint(&up{Writer: io.Discard}, "x")`},
		{"bufio strings", "", `s := bufio.NewScanner(strings.NewReader("")); s.Split(bufio.ScanRunes); for s.Scan() { _ = s.Text() }; w := bufio.NewScanner(strings.NewReader("")); w.Split(bufio.ScanWords)`},
		{"bufio strings", "", `s := bufio.NewScanner(strings.NewReader("")); for s.Scan() { _ = s.Bytes()[0] }`},
		{"image image/color image/draw", "", `m := image.NewRGBA(image.Rect(0, 0, 2, 2)); draw.Draw(m, m.Bounds(), image.White, image.ZP, draw.Src); m.Set(0, 0, color.Black); _ = color.RGBAModel.Convert(color.White)`},
		{"reflect", "type pair struct{ A, B int }", `v := reflect.ValueOf(pair{1, 2}); for i := range v.NumField() { _ = v.Type().Field(i).Name + v.Field(i).String() }; _ = v.Field(0).Interface() == reflect.Zero(v.Type()).Interface()`},
		{"log log/slog", "", `log.SetFlags(0); log.SetPrefix("x"); slog.SetDefault(slog.New(slog.DiscardHandler)); slog.Info("x")`},
		{"encoding/gob bytes", "", `_ = gob.NewEncoder(&bytes.Buffer{}).Encode(1)`},
	} {
		p, r := g.Check(program(c.imports, c.decls, c.body))
		if r != nil {
			t.Errorf("%s: refused: %v", c.body, r)
		} else if p.Residue {
			t.Errorf("%s\n%s: counts as one that changes other packages", c.decls, c.body)
		}
	}
}

// Programs that change what other packages hold are found.
func TestResidue(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	for _, c := range []struct{ imports, body string }{
		{"encoding/gob", `gob.Register(1)`},
		{"encoding/gob", `f := gob.Register; f(1)`},
		{"archive/zip", `zip.RegisterCompressor(99, nil)`},
		{"image", `image.RegisterFormat("x", "x", nil, nil)`},
		{"image", `p := image.White; p.C = nil`},
		{"reflect time", `reflect.ValueOf(time.UTC).Elem().Set(reflect.ValueOf(*time.Local))`},
		{"reflect time", `reflect.ValueOf(time.UTC).Elem().MethodByName("Set")`},
		{"image/color/palette image", `m := image.NewPaletted(image.Rect(0, 0, 1, 1), palette.Plan9); m.Palette[0] = nil`},
		{"go/types", `types.Universe.Insert(nil)`},
	} {
		p, r := g.Check(program(c.imports, "", c.body))
		if r != nil {
			t.Errorf("%s: refused: %v", c.body, r)
		} else if !p.Residue {
			t.Errorf("%s: counts as one that leaves nothing", c.body)
		}
	}
}

// Variables of interface types hold nothing that a program can change through them. Each was examined.
func TestInterfaceVariables(t *testing.T) {
	t.Parallel()
	imp, err := std.Importer()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, p := range allow.Packages() {
		pkg, err := imp.Import(p.Path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range pkg.Scope().Names() {
			v, ok := pkg.Scope().Lookup(name).(*types.Var)
			if ok && v.Exported() && p.Shows(name) && types.IsInterface(v.Type()) &&
				!types.Identical(v.Type(), types.Universe.Lookup("error").Type()) {
				found = append(found, p.Path+"."+name)
			}
		}
	}
	if want := knownInterfaceVariables; !slices.Equal(found, want) {
		t.Errorf("got %q, known are %q: look whether a program can change what the others hold", found, want)
	}
}

// knownInterfaceVariables lists those that are not errors. Programs get a replacement for crypto/rand.Reader. The models
// of colours hold functions, the others structs without fields.
var knownInterfaceVariables = []string{"crypto/rand.Reader", "image/color.Alpha16Model", "image/color.AlphaModel",
	"image/color.CMYKModel", "image/color.Gray16Model", "image/color.GrayModel", "image/color.NRGBA64Model",
	"image/color.NRGBAModel", "image/color.NYCbCrAModel", "image/color.RGBA64Model", "image/color.RGBAModel",
	"image/color.YCbCrModel", "image/draw.FloydSteinberg", "io.Discard", "log/slog.DiscardHandler"}
