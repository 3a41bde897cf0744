package tools

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io/fs"
	"net/http"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/runtime/provider/openaitest"
	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// uploaded returns a reference to a new file.
func uploaded(d *rig.Daemon, name, mediaType string, data []byte) object {
	d.T.Helper()
	file := d.Send(http.MethodPost, "/v1/files?name="+name, data,
		map[string]string{"Content-Type": mediaType}).Object(d.T)
	return object{"$file": file["id"]}
}

// contentOf returns the content of the file that a value refers to.
func contentOf(d *rig.Daemon, value any) []byte {
	d.T.Helper()
	ref, ok := value.(object)
	if !ok {
		d.T.Fatalf("%v is no file", value)
	}
	return d.Send(http.MethodGet, "/v1/files/"+fmt.Sprint(ref["$file"])+"/content", nil, nil).Body
}

// zipped returns an archive of files.
func zipped(t *testing.T, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		f, err := w.Create(files[i])
		if err == nil {
			_, err = f.Write([]byte(files[i+1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// picture returns a picture whose left half is red and whose right half is blue.
func picture(w, h int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := color.RGBA{R: 255, A: 255}
			if x >= w/2 {
				c = color.RGBA{B: 255, A: 255}
			}
			m.Set(x, y, c)
		}
	}
	return m
}

const zipTotals = `	data, err := call.ReadFile(call.Arg(0, "archive"))
	if err != nil {
		return nil, err
	}
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, recurgent.Fail("parse_failed", err.Error())
	}
	totals := map[string]float64{}
	for _, f := range r.File {
		if filepath.Ext(f.Name) != ".csv" {
			continue
		}
		in, err := f.Open()
		if err != nil {
			return nil, err
		}
		rows, err := csv.NewReader(in).ReadAll()
		in.Close()
		if err != nil {
			return nil, recurgent.Fail("parse_failed", err.Error())
		}
		for _, row := range rows[1:] {
			price, err := strconv.ParseFloat(row[1], 64)
			if err != nil {
				return nil, recurgent.Fail("parse_failed", err.Error())
			}
			totals[path.Dir(f.Name)] += price
		}
	}
	return totals, nil`

const thumbnail = `	data, err := call.ReadFile(call.Arg(0, "picture"))
	if err != nil {
		return nil, err
	}
	src, format, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, recurgent.Fail("parse_failed", err.Error())
	}
	b := src.Bounds()
	w := 40
	h := b.Dy() * w / b.Dx()
	dst := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := 0; y < h; y++ {
		for x := 0; x < w; x++ {
			dst.Set(x, y, src.At(b.Min.X+x*b.Dx()/w, b.Min.Y+y*b.Dy()/h))
		}
	}
	f, err := call.Create("thumbnail.png", "image/png")
	if err != nil {
		return nil, err
	}
	if err := png.Encode(f, dst); err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	return map[string]any{"format": format, "file": f.Ref()}, nil`

const invoicePage = `	type Line struct {
		Item  string
		Count int
		Price float64
	}
	var in struct {
		Customer string
		Lines    []Line
	}
	if err := call.Bind(&in); err != nil {
		return nil, recurgent.Fail("invalid_input", err.Error())
	}
	t, err := template.New("invoice").Funcs(template.FuncMap{
		"total": func(l Line) float64 { return float64(l.Count) * l.Price },
		"money": func(f float64) string { return fmt.Sprintf("%.2f EUR", f) },
	}).Parse("<h1>{{.Customer}}</h1>{{range .Lines}}<p>{{.Item}}: {{total . | money}}</p>{{end}}")
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	if err := t.Execute(&b, in); err != nil {
		return nil, err
	}
	return b.String(), nil`

const readMail = `	text, ok := call.Arg(0, "message").(string)
	if !ok {
		return nil, recurgent.Fail("invalid_input", "message must be a string")
	}
	m, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		return nil, recurgent.Fail("parse_failed", err.Error())
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil {
		return nil, err
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(kind, "multipart/") {
		return nil, recurgent.Fail("parse_failed", "no parts")
	}
	files := []string{}
	for r := multipart.NewReader(m.Body, params["boundary"]); ; {
		p, err := r.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, recurgent.Fail("parse_failed", err.Error())
		}
		data, err := io.ReadAll(base64.NewDecoder(base64.StdEncoding, p))
		if err != nil {
			return nil, err
		}
		files = append(files, fmt.Sprintf("%s, %s", p.FileName(), http.DetectContentType(data)))
	}
	return map[string]any{"subject": subject, "files": files}, nil`

const message = "From: a@example.org\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Disposition: attachment; filename=\"a.pdf\"\r\n\r\nJVBERi0xLjc=\r\n--b\r\nContent-Disposition: attachment; filename=\"b.png\"\r\n\r\niVBORw0KGgo=\r\n--b--\r\n"

// Programs as models write them use archives, pictures, templates and mail.
func TestLibrariesInCalls(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{
		"office.totals": {rig.Program(zipTotals, "archive/zip", "bytes", "encoding/csv", "path", "path/filepath", "strconv")},
		"office.thumbnail": {strings.Replace(rig.Program(thumbnail, "bytes", "image", "image/png"), "\t\"image\"\n",
			"\t\"image\"\n\t_ \"image/gif\"\n\t_ \"image/jpeg\"\n", 1)},
		"office.invoice": {rig.Program(invoicePage, "fmt", "html/template", "strings")},
		"office.mail": {rig.Program(readMail, "encoding/base64", "fmt", "io", "mime", "mime/multipart", "net/http",
			"net/mail", "strings")},
	}))
	s := d.Session("office")
	archive := zipped(t, "q1/a.csv", "item,price\nx,1.5\ny,2\n", "q2/b.csv", "item,price\nz,10\n", "notes.txt", "none")
	d.WantValue(d.Call(s, "totals", uploaded(d, "sales.zip", "application/zip", archive)),
		object{"q1": 3.5, "q2": 10}, "generated")
	d.WantError(d.Call(s, "totals", uploaded(d, "sales.zip", "application/zip", []byte("none"))), "parse_failed")
	var jpg bytes.Buffer
	if err := jpeg.Encode(&jpg, picture(400, 200), nil); err != nil {
		t.Fatal(err)
	}
	made := d.Call(s, "thumbnail", uploaded(d, "photo.jpg", "image/jpeg", jpg.Bytes()))
	if !made.Outcome.OK {
		t.Fatalf("%+v", made.Outcome)
	}
	small, err := png.Decode(bytes.NewReader(contentOf(d, made.Outcome.Value.(object)["file"])))
	if err != nil {
		t.Fatal(err)
	}
	left, _, _, _ := small.At(2, 10).RGBA()
	_, _, right, _ := small.At(37, 10).RGBA()
	if small.Bounds() != image.Rect(0, 0, 40, 20) || left < 0xf000 || right < 0xf000 ||
		made.Outcome.Value.(object)["format"] != "jpeg" {
		t.Errorf("%v, red %x, blue %x, %v", small.Bounds(), left, right, made.Outcome.Value)
	}
	d.WantValue(d.CallWith(s, "invoice", object{"Customer": "Ann & <Bob>",
		"Lines": []any{object{"Item": "nuts", "Count": 3, "Price": 1.25}}}),
		"<h1>Ann &amp; &lt;Bob&gt;</h1><p>nuts: 3.75 EUR</p>", "generated")
	d.WantValue(d.Call(s, "mail", message), object{"subject": "Grüße",
		"files": []any{"a.pdf, application/pdf", "b.png, image/png"}}, "generated")
	wantNoneLost(t, d)
}

// Loggers write to the notes of the call, without times.
func TestLoggersWriteNotes(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{"l.m": {rig.Program("\tlog.Printf(\"%d rows\", 3)\n\tslog.Warn(\"slow\", \"ms\", 12)\n\tcall.Log(\"mine\")\n\tlog.SetFlags(log.Lshortfile)\n\tlog.SetPrefix(\"then \")\n\tlog.Print(\"last\")\n\treturn 1, nil", "log", "log/slog")}}))
	s := d.Session("l")
	for range 2 { // what one call sets is no other's
		got := d.LogOf(d.Call(s, "m"))["notes"]
		if want := []any{"3 rows", "WARN slow ms=12", "mine", "then program.go:15: last"}; !rig.Equal(want, got) {
			t.Errorf("got the notes %q", got)
		}
	}
}

const deadlines = `	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	child, stop := context.WithCancel(ctx)
	defer stop()
	steps := 0
	for child.Err() == nil {
		time.Sleep(2 * time.Second)
		steps++
	}
	<-ctx.Done()
	var wg sync.WaitGroup
	order := []int{}
	for i := range 3 {
		wg.Go(func() { order = append(order, i) })
	}
	wg.Wait()
	return []any{steps, errors.Is(child.Err(), context.DeadlineExceeded), context.Cause(child).Error(), order}, nil`

const orders = `	m, all := map[string]int{}, sync.Map{}
	for i := range 50 {
		m[fmt.Sprint("k", i)] = i
		all.Store(i*7%50, i)
	}
	var keys, ranged []string
	for _, k := range reflect.ValueOf(m).MapKeys() {
		keys = append(keys, k.String())
	}
	for it := reflect.ValueOf(m).MapRange(); it.Next(); {
		ranged = append(ranged, it.Key().String())
	}
	numbers := []int{}
	all.Range(func(k, v any) bool {
		numbers = append(numbers, k.(int))
		return true
	})
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	logged := &bytes.Buffer{}
	slog.New(slog.NewJSONHandler(logged, nil)).Info("x")
	key := make([]byte, 4)
	rand.Read(key)
	return []any{slices.IsSorted(keys), slices.Equal(keys, ranged), slices.IsSorted(numbers), w.Boundary(), logged.String(), key, time.Now()}, nil`

const newKey = `	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return k.X.String(), nil`

// What libraries do follows the run's clock and seed: deadlines, the order of maps, times of records, boundaries of
// parts. A replay is the same. Where a library yields something else each time, the facts say so.
func TestLibrariesFollowTheRun(t *testing.T) {
	t.Parallel()
	d := rig.Start(t, rig.NewModel(t, rig.Script{
		"f.deadlines": {rig.Program(deadlines, "context", "errors", "sync", "time")},
		"f.orders": {rig.Program(orders, "bytes", "crypto/rand", "fmt", "log/slog", "mime/multipart", "reflect", "slices",
			"sync", "time")},
		"f.key": {rig.Program(newKey, "crypto/ecdsa", "crypto/elliptic", "crypto/rand")},
	}))
	s := d.Session("f")
	d.WantValue(d.Call(s, "deadlines"), []any{3, true, "context deadline exceeded", []any{0, 1, 2}}, "generated")
	replay := func(r rig.Reply) object {
		return d.Do(http.StatusOK, http.MethodPost, "/v1/calls/"+r.CallID+"/replay", object{}).Object(t)
	}
	got := d.Call(s, "orders")
	list, _ := got.Outcome.Value.([]any)
	if len(list) != 7 || !rig.Equal([]any{true, true, true}, list[:3]) || replay(got)["equal"] != true {
		t.Fatalf("got %v, a replay: %v", got.Outcome, replay(got))
	}
	if logged := fmt.Sprint(list[4]); !strings.Contains(logged, fmt.Sprint(list[6])) {
		t.Errorf("a record has another time than the run, %v: %s", list[6], logged)
	}
	if r := replay(d.Call(s, "key")); r["equal"] == true || !strings.Contains(fmt.Sprint(r["reason"]), "a library") {
		t.Errorf("a replay of a new key: %v", r)
	}
	for method, want := range map[string]any{"orders": nil, "key": true} {
		g := d.List(rig.MethodPath("f", method) + "/generations")[0]
		if facts := g["facts"].(object); facts["nondeterministic"] != want {
			t.Errorf("%s: nondeterministic is %v", method, facts["nondeterministic"])
		}
	}
}

// A name that programs cannot use is refused with what to use, which a repair is shown, and so are the names and the
// signatures that a compile error is about.
func TestRefusedNamesAreExplained(t *testing.T) {
	t.Parallel()
	fine := rig.Program("\treturn \"ok\", nil")
	cases := map[string]struct{ wrong, says string }{
		"file": {rig.Program("\tt, err := template.ParseFiles(\"a.tmpl\")\n\treturn t.Name(), err", "text/template"),
			"template.New(name).Parse(text)"},
		"method": {rig.Program("\tt, err := template.New(\"a\").ParseGlob(\"*\")\n\treturn t.Name(), err", "html/template"),
			"template.New(name).Parse(text)"},
		"type":   {rig.Program("\treturn mime.TypeByExtension(\".csv\"), nil", "mime"), "text/csv"},
		"timer":  {rig.Program("\tcontext.AfterFunc(context.Background(), func() {})\n\treturn 1, nil", "context"), "There are no timers"},
		"socket": {rig.Program("\tc, err := net.Dial(\"tcp\", \"a:1\")\n\treturn c, err", "net"), "call.Fetch"},
		"nearest": {rig.Program("\tr, err := zip.OpenArchive(nil)\n\treturn r, err", "archive/zip"),
			"NewReader(r io.ReaderAt, size int64) (*zip.Reader, error), NewWriter"},
		"signature": {rig.Program("\tr, err := zip.NewReader(strings.NewReader(\"\"), \"\")\n\treturn len(r.File), err", "archive/zip", "strings"),
			"zip.NewReader(r io.ReaderAt, size int64) (*zip.Reader, error) is its signature"},
	}
	script := rig.Script{}
	for method, c := range cases {
		script["r."+method] = []any{c.wrong, fine}
	}
	m := rig.NewModel(t, script)
	d := rig.Start(t, m)
	s := d.Session("r")
	for method, c := range cases {
		d.WantValue(d.Call(s, method), "ok", "generated")
		if asked := m.LastQuestion().User; !strings.Contains(asked, c.says) {
			t.Errorf("%s: the repair does not say %q:\n%s", method, c.says, asked)
		}
	}
}

// bombs are programs that take what is small and becomes large, with their arguments.
func bombs(d *rig.Daemon) map[string]struct {
	source string
	arg    any
} {
	zeros := make([]byte, 1<<20)
	var gz bytes.Buffer
	w := gzip.NewWriter(&gz)
	if _, err := w.Write(zeros); err != nil {
		d.T.Fatal(err)
	}
	if err := w.Close(); err != nil {
		d.T.Fatal(err)
	}
	members := bytes.Repeat(gz.Bytes(), 1<<10) // readers join the members of a file
	huge := base64.StdEncoding.EncodeToString(hugePicture(d.T))
	file := func(name string, data []byte) object { return uploaded(d, name, "application/octet-stream", data) }
	read := "\tdata, err := call.ReadFile(call.Arg(0, \"file\"))\n\tif err != nil {\n\t\treturn nil, err\n\t}\n"
	return map[string]struct {
		source string
		arg    any
	}{
		"gzip": {rig.Program(read+"\tr, err := gzip.NewReader(bytes.NewReader(data))\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tall, err := io.ReadAll(r)\n\treturn len(all), err",
			"bytes", "compress/gzip", "io"), file("a.gz", members)},
		"zip": {rig.Program(read+"\tr, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tall := map[string][]byte{}\n\tfor i, f := range r.File {\n\t\tin, err := f.Open()\n\t\tif err != nil {\n\t\t\treturn nil, err\n\t\t}\n\t\tif all[fmt.Sprint(i)], err = io.ReadAll(in); err != nil {\n\t\t\treturn nil, err\n\t\t}\n\t}\n\treturn len(all), nil",
			"archive/zip", "bytes", "fmt", "io"), file("a.zip", zippedZeros(d.T, zeros, 64, 8))},
		"picture": {rig.Program("\tdata, err := base64.StdEncoding.DecodeString(call.Arg(0, \"picture\").(string))\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tm, err := png.Decode(bytes.NewReader(data))\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\treturn m.Bounds().Dx(), nil",
			"bytes", "encoding/base64", "image/png"), huge},
		"template": {rig.Program("\tt, err := template.New(\"a\").Parse(call.Arg(0, \"text\").(string))\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\tvar b strings.Builder\n\terr = t.Execute(&b, nil)\n\treturn b.Len(), err",
			"strings", "text/template"), "{{define \"b\"}}" + strings.Repeat("x", 5000) + "{{template \"b\"}}{{template \"b\"}}{{end}}{{template \"b\"}}"},
		"regexp": {rig.Program("\tparts := []*regexp.Regexp{}\n\tfor i := range 100000 {\n\t\tre, err := regexp.Compile(fmt.Sprint(call.Arg(0, \"pattern\"), i))\n\t\tif err != nil {\n\t\t\treturn nil, err\n\t\t}\n\t\tparts = append(parts, re)\n\t}\n\treturn len(parts), nil",
			"fmt", "regexp"), "(a{1000}|b{1000}|c{1000})"},
	}
}

// zippedZeros returns an archive of n equal files, each of which has the zeros so many times. It compresses them once.
func zippedZeros(t *testing.T, zeros []byte, times, n int) []byte {
	t.Helper()
	var part, b bytes.Buffer
	deflate, err := flate.NewWriter(&part, flate.BestSpeed)
	if err == nil {
		_, err = deflate.Write(zeros)
	}
	if err == nil {
		err = deflate.Flush() // what follows begins at a byte
	}
	if err != nil {
		t.Fatal(err)
	}
	data := append(bytes.Repeat(part.Bytes(), times), 3, 0) // the last block is empty
	sum := crc32.NewIEEE()
	for range times {
		sum.Write(zeros)
	}
	w := zip.NewWriter(&b)
	for i := range n {
		f, err := w.CreateRaw(&zip.FileHeader{Name: fmt.Sprint(i), Method: zip.Deflate, CRC32: sum.Sum32(),
			CompressedSize64: uint64(len(data)), UncompressedSize64: uint64(times * len(zeros))})
		if err == nil {
			_, err = f.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	archive, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fs.ReadFile(archive, "0"); err != nil {
		t.Fatal(err) // a reader would refuse what is meant to be large
	}
	return b.Bytes()
}

// hugePicture returns a picture of 50,000 by 50,000 points whose data is missing.
func hugePicture(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, picture(2, 2)); err != nil {
		t.Fatal(err)
	}
	data := b.Bytes()
	header := data[12:29] // the chunk IHDR: its name, width, height
	for i, side := range []byte{0, 0, 0xc3, 0x50} {
		header[4+i], header[8+i] = side, side
	}
	sum := crc32.ChecksumIEEE(header)
	copy(data[29:], []byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
	return data
}

// What is small and becomes large ends its call within the limits, and harms no other.
func TestBombsEndWithinLimits(t *testing.T) {
	t.Parallel()
	m := rig.NewModel(t, rig.Script{})
	d := rig.Start(t, m, "--policy", "repair_enabled=false")
	all := bombs(d)
	for method, b := range all {
		m.Answer("b", method, openaitest.Code(b.source))
	}
	m.Answer("b", "fine", openaitest.Code(rig.ProgGiven))
	s := d.Session("b")
	for method, b := range all {
		r := d.Call(s, method, b.arg)
		if r.Outcome.ErrorType != "resource_exhausted" {
			t.Errorf("%s: got %+v, %s", method, r.Outcome, last(d, r))
		}
	}
	d.WantValue(d.Call(s, "fine", 1), 1.0, "generated")
}
