package html_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/cascadia"
	original "golang.org/x/net/html"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent/html"
)

//go:generate go run ../../gate/gen/copy .

// panicOf returns the text with which f panics.
func panicOf(f func()) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = fmt.Sprint(r)
		}
	}()
	f()
	return ""
}

func TestBadSelectors(t *testing.T) {
	t.Parallel()
	doc := parse(t, shop)
	for selector, want := range map[string]string{
		"":                                  "expected selector",
		"a[":                                "selector",
		"a >":                               "selector",
		"a,":                                "selector",
		"td:first":                          "use First()",
		"td:eq(1)":                          "use Eq(i)",
		"p::first-line":                     "pseudo-element",
		"p:matches(a+)":                     "regular expressions",
		"[href#=(x)]":                       "regular expressions",
		strings.Repeat("a", 1001):           "longer than 1000 bytes",
		strings.Repeat("a ", 65):            "more than 64 parts",
		":not(:not(:not(:not(a))))":         "brackets",
		strings.Repeat(":has(", 190):        "brackets",
		"\x00":                              "selector",
		"a\\":                               "selector",
		":nth-child(99999999999999999999n)": "out of range",
	} {
		if err := html.CheckSelector(selector); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("CheckSelector(%.40q) = %v, want %q in it", selector, err, want)
		}
		if got := panicOf(func() { doc.Find(selector) }); !strings.Contains(got, want) {
			t.Errorf("Find(%.40q) panics with %q, want %q in it", selector, got, want)
		}
	}
}

// Harmless selectors take the time of one walk on any page. Selectors that visit siblings or descendants repeatedly are
// refused where the page makes that expensive.
func TestCostIsBounded(t *testing.T) {
	t.Parallel()
	deep := parse(t, strings.Repeat("<div><p>", 240)+strings.Repeat("<a>x</a>", 2000))
	if got := deep.Find(".none" + strings.Repeat(" div", 20) + " a").Length(); got != 0 {
		t.Errorf("%d found", got)
	}
	if got := deep.Find(strings.Repeat("div ", 20) + " a").Length(); got != 2000 {
		t.Errorf("%d of 2000 found", got)
	}
	wide := parse(t, strings.Repeat("<i></i>", 200_000))
	if got := wide.Find("i:nth-child(7)").Length() + wide.Find("i:last-child").Length(); got != 2 {
		t.Errorf("%d of 2 found", got)
	}
	for doc, selectors := range map[*html.Document][]string{
		wide: {"i:nth-child(odd)", "i ~ i ~ i", "i:last-of-type", "b:not(i ~ i)"},
		deep: {":has(:has(a))", "div:contains('y') :has(:contains('z'))"},
		parse(t, strings.Repeat("<!---->", 100_000)+strings.Repeat("<i></i>", 100_000)): {"i:first-child"},
	} {
		for _, selector := range selectors {
			if got := panicOf(func() {
				doc.Find(
					selector)
			}); !strings.Contains(got, "costs too much") && doc != deep || doc == deep && got != "" {
				t.Errorf("Find(%q) panics with %q", selector, got)
			}
		}
	}
	bomb := parse(t, "<table>"+strings.Repeat("<tr>"+strings.Repeat("<td colspan=1000>x", 20), 100))
	if got := panicOf(func() { bomb.Table() }); !strings.Contains(got, "cells") {
		t.Errorf("a table of two million cells panics with %q", got)
	}
	if got := panicOf(func() {
		parse(t,
			"<table><tr><td rowspan=99999 colspan=99999999999>x</table>").Table()
	}); got != "" {
		t.Errorf("spans beyond the table panic with %q", got)
	}
}

// Find finds what the published versions of cascadia and the parser find.
func TestFindAgreesWithCascadia(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for range 300 {
		page := randomPage(random)
		root, err := original.ParseWithOptions(strings.NewReader(page), original.ParseOptionEnableScripting(false))
		if err != nil {
			t.Fatal(err)
		}
		doc := parse(t, page)
		for range 20 {
			selector := randomSelector(random, 2)
			if html.CheckSelector(selector) != nil { // too many parts, or too long
				refused++
				continue
			}
			group, err := cascadia.ParseGroup(selector)
			if err != nil {
				t.Fatalf("%q: %v", selector, err)
			}
			want := []string{}
			for _, n := range cascadia.QueryAll(root, group) {
				if n.Type == original.ElementNode { // cascadia also returns texts for :contains
					var b strings.Builder
					if err := original.Render(&b, n); err != nil {
						t.Fatal(err)
					}
					want = append(want, b.String())
				}
			}
			got := []string{}
			for _, s := range doc.Find(selector).All() {
				text, err := s.OuterHtml()
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, text)
				if !s.Is(selector) {
					t.Errorf("%q does not match what it found: %s", selector, text)
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("page %s\nselector %q\nfound  %q\nwanted %q", page, selector, got, want)
			}
		}
	}
	if refused > 300 {
		t.Errorf("%d of 6000 selectors were refused", refused)
	}
}

func pick(r *rand.Rand, of string) string {
	words := strings.Split(of, "|")
	return words[r.IntN(len(words))]
}

func randomPage(r *rand.Rand) string {
	var b strings.Builder
	for range 5 + r.IntN(40) {
		switch r.IntN(4) {
		case 0:
			b.WriteString("</" + pick(r, "div|p|b|ul|table|td") + ">")
		case 1:
			b.WriteString(pick(r, "x| one |two &amp; |&eacute;|&notit;|<!-- c -->|a'b"))
		default:
			fmt.Fprintf(&b, "<%s class='%s %s' id=%s title=\"%s\">",
				pick(r, "div|p|b|ul|li|table|tr|td|a href=x|br|svg|my-el"), pick(r, "a|b|c"), pick(r, "a|x y|"),
				pick(r, "i|j"), pick(r, "a b|a-b|q>w, e"))
		}
	}
	return b.String()
}

func randomSelector(r *rand.Rand, nested int) string {
	var b strings.Builder
	for i := range 1 + r.IntN(3) {
		if i > 0 {
			b.WriteString(pick(r, ", | , "))
		}
		for k := range 1 + r.IntN(4) {
			if k > 0 {
				b.WriteString(pick(r, " |  |>| > | >|+| + |~| ~ | ~|\n"))
			}
			b.WriteString(pick(r, "*|div|p|b|li|td|my-el|.a|.b|#i"))
			for range r.IntN(3) {
				b.WriteString(pick(r, `.a|#i|[title]|[title="a b"]|[title^='q>w, e']|[class~=x]|[id!=i]|[title*="\"" i]|:first-child|:last-child|:nth-child(2n+1)|:nth-of-type(2)|:only-child|:empty|:contains("one")|:contains('a\'b')|.\61 |:link`))
			}
			if nested > 0 && r.IntN(6) == 0 {
				fmt.Fprintf(&b, ":%s(%s)", pick(r, "not|has|haschild"), randomSelector(r, nested-1))
			}
		}
	}
	return b.String()
}

// The copies match the versions in go.mod.
func TestCopiesAreCurrent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run(t, "go", "run", "../../gate/gen/copy", dir)
	made := 0
	err := filepath.WalkDir(filepath.Join(dir, "internal"), func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		made++
		rel, _ := filepath.Rel(dir, name)
		want, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if got, err := os.ReadFile(rel); err != nil || string(got) != string(want) {
			t.Errorf("%s is not what copy makes (%v): run go generate", rel, err)
		}
		return nil
	})
	kept, _ := filepath.Glob("internal/*/*")
	more, _ := filepath.Glob("internal/*/*/*")
	if err != nil || made < 15 || len(kept)+len(more)-1 != made {
		t.Errorf("%d files are made, %d kept: %v", made, len(kept)+len(more)-1, err)
	}
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}
