package docs

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// The demo runs from beginning to end against a real daemon on a directory of its own.
func TestDemo(t *testing.T) {
	t.Parallel()
	out, errs, code := rig.Run(t, append(rig.Environment(t.TempDir()), "COLUMNS=100"), "demo")
	if code != 0 {
		t.Fatalf("exit code %d: %s\n%s", code, errs, out)
	}
	for _, part := range []string{"generated", "persisted", "repaired", "calculator.add(2, 3)", "= 5", "= 42",
		`{"x":6}`, "invoice.total", "calculator.multiply", `"AL"`, "tax.net(1000) = 600",
		"a person: wrong, expected 700", "tax.net(1000) = 700", " serve ", " call calculator add 2 3"} {
		if !strings.Contains(out, part) {
			t.Errorf("the demo does not show %q:\n%s", part, out)
		}
	}
	comparePicture(t, out)
}

// picturePath is the README's terminal picture. It is drawn from what demo prints: scripts/picture.
const picturePath = "../../docs/demo.svg"

const (
	charWidth  = 8.4
	lineHeight = 20
	pictureTop = 52 // below the bar of the window
	margin     = 20
)

// comparePicture holds the picture to what demo has just printed, apart from times and the port; with -update it draws
// it.
func comparePicture(t *testing.T, printed string) {
	t.Helper()
	want := pictured(printed)
	if *rig.Update {
		if err := os.WriteFile(picturePath, drawTerminal("recurgentd demo", want),
			0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(picturePath)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pictureText(data)
	if err != nil {
		t.Fatalf("%s: %v", picturePath, err)
	}
	if a, b := timeless(strings.Join(got, "\n")), timeless(strings.Join(want, "\n")); a != b {
		t.Errorf("%s is not what demo prints; draw it with scripts/picture.\nIt shows:\n%s\ndemo prints:\n%s",
			picturePath, a, b)
	}
}

// pictured is the part of the demo that the picture shows: the chapters before the last one, under the command.
func pictured(printed string) []string {
	story, _, _ := strings.Cut(printed, "\n6. ")
	return append([]string{"$ recurgentd demo"}, strings.Split(strings.TrimRight(story, "\n"), "\n")...)
}

// timeless takes out what differs from run to run.
func timeless(text string) string {
	text = regexp.MustCompile(` +[0-9]+\.[0-9]+ ms`).ReplaceAllString(text, " N ms")
	return regexp.MustCompile(`127\.0\.0\.1:[0-9]+`).ReplaceAllString(text, "127.0.0.1:PORT")
}

// drawTerminal draws the lines as a terminal's window. Each line is one text element, stretched to its place, so that
// columns stand below each other in whatever font there is.
func drawTerminal(title string, lines []string) []byte {
	columns := 0
	for _, line := range lines {
		columns = max(columns, utf8.RuneCountInString(line))
	}
	width, height := int(2*margin+float64(columns)*charWidth)+1, pictureTop+lineHeight*len(lines)
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" role="img" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14">
<title>%[3]s</title>
<style>text{fill:#d7dae0;white-space:pre}.s{fill:#fff;font-weight:bold}.d{fill:#7f8793}.g{fill:#e5c07b}.p{fill:#98c379}.r{fill:#c678dd}</style>
<rect width="%[1]d" height="%[2]d" rx="8" fill="#1e2127"/>
<circle cx="22" cy="20" r="6" fill="#ff5f56"/><circle cx="42" cy="20" r="6" fill="#ffbd2e"/><circle cx="62" cy="20" r="6" fill="#27c93f"/>
`, width, height, escaped(title))
	for i, line := range lines {
		if line == "" { // a blank line is a text element, too: the picture has the lines of the terminal
			fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\"/>\n", margin, pictureTop+i*lineHeight)
			continue
		}
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" textLength=\"%.1f\" lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\">%s</text>\n",
			margin, pictureTop+i*lineHeight, float64(utf8.RuneCountInString(line))*charWidth, painted(line))
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

var callLine = regexp.MustCompile(`^(.*  )(generated|persisted|repaired|none)( +)([0-9]+\.[0-9]+ ms)$`)

// painted marks up a line: headings, and the columns of a call, in the colours that demo uses on a terminal.
func painted(line string) string {
	if m := callLine.FindStringSubmatch(line); m != nil {
		return fmt.Sprintf(`%s<tspan class="%c">%s</tspan>%s<tspan class="d">%s</tspan>`, escaped(m[1]), m[2][0], m[2],
			m[3], m[4])
	}
	if regexp.MustCompile(`^(\$|[0-9]\.) `).MatchString(line) {
		return `<tspan class="s">` + escaped(line) + `</tspan>`
	}
	return escaped(line)
}

func escaped(text string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(text)); err != nil {
		panic("a strings.Builder failed: " + err.Error()) // it never does
	}
	return b.String()
}

// pictureText reads the lines out of a picture.
func pictureText(svg []byte) ([]string, error) {
	var lines []string
	inside := false
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		if err != nil {
			return nil, err
		}
		switch e := token.(type) {
		case xml.StartElement:
			if e.Name.Local == "text" {
				inside, lines = true, append(lines, "")
			}
		case xml.EndElement:
			inside = inside && e.Name.Local != "text"
		case xml.CharData:
			if inside {
				lines[len(lines)-1] += string(e)
			}
		}
	}
}
