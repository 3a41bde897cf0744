package charsets

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
)

const rows = "Name;Ort\r\nMüller;Köln\r\n"

// encoded returns the text in a character set.
func encoded(t testing.TB, text, name string) string {
	t.Helper()
	enc, _ := charset.Lookup(name)
	out, err := enc.NewEncoder().String(text)
	if err != nil {
		t.Fatal(name, err)
	}
	return out
}

// Texts as saved by spreadsheets are decoded correctly, in whatever pieces they arrive.
func TestTexts(t *testing.T) {
	t.Parallel()
	russian, greek := "Имя;Город\r\nИванов;Москва\r\nПетрова;Санкт-Петербург\r\n",
		"Όνομα;Πόλη\r\nΓιώργος;Αθήνα\r\nΜαρία;Θεσσαλονίκη\r\n"
	for _, tt := range []struct{ name, bytes, media, want, text string }{
		{"ASCII", "a;b\r\n1;2\r\n", "", "utf-8", "a;b\r\n1;2\r\n"},
		{"UTF-8", rows, "text/csv", "utf-8", rows},
		{"marked", "\xef\xbb\xbf" + rows, "text/csv", "utf-8", rows},
		{"UTF-16", "\xff\xfe" + encoded(t, rows, "utf-16le"), "text/csv", "utf-16le", rows},
		{"UTF-16, the other way", "\xfe\xff" + encoded(t, rows, "utf-16be"), "", "utf-16be", rows},
		{"UTF-16 without a mark", encoded(t, rows, "utf-16le"), "", "utf-16le", rows},
		{"German", encoded(t, rows, latin), "text/csv", latin, rows},
		{"a euro", encoded(t, "Artikel;Preis\r\nÄpfel;1,20 €\r\n", latin), "text/csv", latin,
			"Artikel;Preis\r\nÄpfel;1,20 €\r\n"},
		{"French", encoded(t, "Nom;Prénom\r\nLefèvre;Aurélie\r\n« CAFÉ»\r\n", latin), "", latin,
			"Nom;Prénom\r\nLefèvre;Aurélie\r\n« CAFÉ»\r\n"},
		{"Danish", encoded(t, "Navn;By\r\nSøren;Århus\r\n", latin), "", latin, "Navn;By\r\nSøren;Århus\r\n"},
		{"one letter in much", strings.Repeat("a;b\r\n", 50_000) + "\xfc\r\n", "text/csv", latin,
			strings.Repeat("a;b\r\n", 50_000) + "ü\r\n"},
		{"UTF-8 late", strings.Repeat("a;b\r\n", 50_000) + "ü\r\n", "text/csv", "utf-8",
			strings.Repeat("a;b\r\n", 50_000) + "ü\r\n"},
		{"cut in a character", rows + "\xc3", "", "utf-8", rows + "\ufffd"},
		{"an odd letter at the end", "POUR S\xc3", "", latin, "POUR SÃ"},
		{"Polish, as it says", encoded(t, "Łódź\r\n", "windows-1250"), "text/csv; charset=windows-1250", "windows-1250",
			"Łódź\r\n"},
		{"it says what it is not", encoded(t, rows, latin), "text/csv; charset=utf-8", latin, rows},
		{"it says what nobody knows", rows, "text/csv; charset=klingon", "utf-8", rows},
		{"DOS", "Name;Stra\xe1e\r\nM\x81ller;K\x94nigstra\xe1e\r\n\x8apfel\r\n", "text/csv", dos,
			"Name;Straße\r\nMüller;Königstraße\r\nèpfel\r\n"},
		{"DOS, as it says", "\x9aBEL\r\n", "text/csv; charset=cp850", dos, "ÜBEL\r\n"},
		{"capitals of DOS", "GR\x99SSE;STRASSE\r\nGr\x94\xe1e;Stra\xe1e\r\n", "text/csv", dos,
			"GRÖSSE;STRASSE\r\nGröße;Straße\r\n"},
		{"capitals of DOS alone", "GR\x99SSE\r\n", "", dos, "GRÖSSE\r\n"},
		{"a word of DOS", "Gr\x94\xe1e;1\r\n", "", dos, "Größe;1\r\n"},
		{"a trademark", "Ko\x9aice\x99 ACME\x99 Ltd\r\n", "", latin, "Košice™ ACME™ Ltd\r\n"},
		{"one damaged byte", strings.Repeat(rows, 100) + "Caf\xe9;Ort\r\n", "text/csv", UTF8,
			strings.Repeat(rows, 100) + "Caf\ufffd;Ort\r\n"},
		{"damaged, as it says", rows + "Caf\xe9;Ort\r\n", "text/csv; charset=utf-8", UTF8, rows + "Caf\ufffd;Ort\r\n"},
		{"damaged, as the document says", "<?xml version=\"1.0\" encoding=\"UTF-8\"?><a>ü\xe9</a>", "text/xml", UTF8,
			"<?xml version=\"1.0\" encoding=\"UTF-8\"?><a>ü\ufffd</a>"},
		{"two character sets", rows + strings.Repeat("M\xfcller;K\xf6ln\r\n", 2), "text/csv", latin,
			"Name;Ort\r\nMÃ¼ller;KÃ¶ln\r\n" + strings.Repeat("Müller;Köln\r\n", 2)},
		{"repetitions of FileMaker", "a;b\x0bc;d\x1de\r\nü", "text/csv", UTF8, "a;b\x0bc;d\x1de\r\nü"},
		{"quotes of Windows", "der \x84Alte\x94 Stra\xdfe\r\n", "", latin, "der „Alte” Straße\r\n"},
		{"quotes alone", "der \x84Alte\x94 sagt\r\n", "", latin, "der „Alte” sagt\r\n"},
		{"a quote within a word", "x\x94y \x84 z\r\n", "", latin, "x”y „ z\r\n"},
		{"Polish XML", encoded(t, "<?xml version='1.0' encoding='ISO-8859-2'?><a>Łódź</a>", "iso-8859-2"), "text/xml",
			"iso-8859-2", "<?xml version='1.0' encoding='UTF-8'?><a>Łódź</a>"},
		{"XML that says what it is not", "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a>ü</a>", "text/xml", "utf-8",
			"<?xml version=\"1.0\" encoding=\"UTF-8\"?><a>ü</a>"},
		{"XML in ASCII", "<?xml version=\"1.0\" encoding=\"us-ascii\"?><a/>", "", "utf-8",
			"<?xml version=\"1.0\" encoding=\"UTF-8\"?><a/>"},
		{"XML in UTF-16", "\xff\xfe" + encoded(t, "<?xml version=\"1.0\" encoding=\"UTF-16\"?><a>ü</a>", "utf-16le"),
			"", "utf-16le", "<?xml version=\"1.0\" encoding=\"UTF-8\"?><a>ü</a>"},
		{"XML of nobody", "<?xml version=\"1.0\" encoding=\"klingon\"?><a>\xfc</a>", "", latin,
			"<?xml version=\"1.0\" encoding=\"UTF-8\"?><a>ü</a>"},
		{"a page", encoded(t, "<html><head><meta charset=\"windows-1250\"></head>Łódź", "windows-1250"), "text/html",
			"windows-1250", "<html><head><meta charset=\"windows-1250\"></head>Łódź"},
		{"Russian", encoded(t, russian, "windows-1251"), "", "windows-1251", russian},
		{"Russian of old", encoded(t, russian, "koi8-r"), "", "koi8-r", russian},
		{"Greek", encoded(t, greek, "iso-8859-7"), "", "iso-8859-7", greek},
		{"Japanese", encoded(t, "名前,都市\r\n田中,東京\r\n鈴木さん,大阪\r\n", "shift_jis"), "", "shift_jis",
			"名前,都市\r\n田中,東京\r\n鈴木さん,大阪\r\n"},
		{"Chinese", encoded(t, "姓名,城市\r\n王伟,北京\r\n李娜,上海\r\n", "gbk"), "", "gb18030", "姓名,城市\r\n王伟,北京\r\n李娜,上海\r\n"},
		{"Korean", encoded(t, "이름,도시\r\n김철수,서울\r\n이영희,부산\r\n", "euc-kr"), "", "euc-kr",
			"이름,도시\r\n김철수,서울\r\n이영희,부산\r\n"},
		{"empty", "", "text/csv", "utf-8", ""},
	} {
		for how, in := range map[string]func() io.Reader{"whole": func() io.Reader {
			return strings.NewReader(
				tt.bytes)
		},
			"in pieces": func() io.Reader { return iotest.HalfReader(strings.NewReader(tt.bytes)) }} {
			name, err := Guess(in(), tt.media)
			if err != nil || name != tt.want {
				t.Errorf("%s, %s: guessed %q, %v, want %q", tt.name, how, name, err, tt.want)
				continue
			}
			r, err := NewReader(in(), name)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(r); err != nil || string(text) != tt.text {
				t.Errorf("%s, %s: read %.200q, %v", tt.name, how, text, err)
			}
		}
	}
}

// Files of other kinds do not count as text.
func TestOtherKinds(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"zip": "PK\x03\x04" + strings.Repeat("\x00\x01ab", 200),
		"PDF": "%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj", "PNG": "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
		"gzip": "\x1f\x8b\x08\x00\x00", "UTF-32": "\xff\xfe\x00\x00a\x00\x00\x00"} {
		if got, err := Guess(strings.NewReader(text), "text/csv"); err != nil || got != "" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := NewReader(strings.NewReader(""), "klingon"); err == nil {
		t.Error("an unknown name is accepted")
	}
	if _, err := Guess(iotest.ErrReader(io.ErrUnexpectedEOF), ""); err != io.ErrUnexpectedEOF {
		t.Errorf("the error is %v", err)
	}
}

// Readers of lines find the lines of old Macintosh files, and no end mark of DOS. All other texts stay unchanged.
func TestLineEnds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ bytes, want, kind string }{
		{"a;b\r1;2\r", "a;b\n1;2\n", "\r"},
		{"\r", "\n", "\r"},
		{"a\rb\r\nc\rd", "a\nb\r\nc\nd", "\r"},
		{"a\r\r\nb", "a\n\r\nb", "\r"},
		{"a\r\nb\rc\r", "a\r\nb\rc\r", "\r\n"},
		{"a\nb\rc", "a\nb\rc", "\n"},
		{"a", "a", ""},
		{"", "", ""},
		{"a;b\r\n1;2\r\n\x1a", "a;b\r\n1;2\r\n", "\r\n"},
		{"a\r\x1a", "a\n", "\r"},
		{"\x1a", "", ""},
		{strings.Repeat("long line\r", 5000), strings.Repeat("long line\n", 5000), "\r"},
	} {
		for how, in := range map[string]io.Reader{"whole": strings.NewReader(tt.bytes),
			"in pieces": iotest.OneByteReader(strings.NewReader(tt.bytes))} {
			name, err := Guess(strings.NewReader(tt.bytes), "")
			if err != nil || name != UTF8 {
				t.Errorf("%.40q: guessed %q, %v", tt.bytes, name, err)
				continue
			}
			r, err := NewReader(in, name)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(r); err != nil || string(text) != tt.want || r.LineEnd() != tt.kind {
				t.Errorf("%.40q, %s: read %.80q, lines that end in %q, %v", tt.bytes, how, text, r.LineEnd(), err)
			}
		}
	}
	if name, err := Guess(strings.NewReader("a\x1ab"), ""); err != nil || name != "" {
		t.Errorf("with the mark within: %q, %v", name, err)
	}
}

// plainLines returns what NewReader yields for the text, computed at once.
func plainLines(text []byte) []byte {
	text = DeclareUTF8(bytes.TrimSuffix(text, []byte{dosEnd}))
	if i := bytes.IndexAny(text, "\r\n"); i < 0 || text[i] == '\n' || bytes.HasPrefix(text[i:], []byte("\r\n")) {
		return text
	}
	return []byte(strings.NewReplacer("\r\n", "\r\n", "\r", "\n").Replace(string(text)))
}

// Whatever the bytes, a guessed character set can be decoded to UTF-8, and UTF-8 stays unchanged.
func FuzzGuess(f *testing.F) {
	f.Add([]byte(rows), "text/csv")
	f.Add([]byte(encoded(f, rows, "utf-16le")), "")
	f.Add([]byte(encoded(f, rows, latin)), "text/plain; charset=latin1")
	f.Fuzz(func(t *testing.T, data []byte, media string) {
		name, err := Guess(iotest.OneByteReader(bytes.NewReader(data)), media)
		if again, _ := Guess(bytes.NewReader(data), media); err != nil || again != name {
			t.Fatalf("%q and %q, %v", name, again, err)
		}
		if name == "" {
			return
		}
		r, err := NewReader(bytes.NewReader(data), name)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil || !utf8.Valid(text) {
			t.Fatalf("in %s: %q, %v", name, text, err)
		}
		if whole := plainLines(bytes.TrimPrefix(data,
			[]byte("\xef\xbb\xbf"))); name == UTF8 && utf8.Valid(data) && !bytes.Equal(text, whole) {
			t.Fatalf("%q became %q", data, text)
		}
	})
}
