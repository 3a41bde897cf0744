//go:build ops

package console

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// loads is how often a page is loaded for the median of its costs, and dearer how often the large one's cost may be the
// small one's.
const (
	loads  = 3
	dearer = 3.0
)

// With 1,000 tools and 10,000 calls, or ten times as many in make test-long, pages list as much as they did with few,
// one page after the other: the scripts of none take more than three times the processor time that they take for ten
// rows.
func TestOpsManyTools(t *testing.T) {
	m := rig.NewModel(t, rig.Script{})
	m.Otherwise(programNet60)
	few := listed(t, m, 10)
	began := time.Now()
	many := multiply(t, m, few)
	t.Logf("filled in %s", time.Since(began))
	b := newBrowser(t)
	small, large := b.open(t, "few", few.URL, nil), b.open(t, "many", many.URL, nil)
	session := func(d *rig.Daemon) string {
		list := d.Get("/v1/calls?limit=1")["data"].([]any)
		return list[0].(map[string]any)["session_id"].(string)
	}
	call := func(d *rig.Daemon) string {
		list := d.Get("/v1/calls?limit=1")["data"].([]any)
		return list[0].(map[string]any)["call_id"].(string)
	}
	for _, page := range []struct{ name, few, many, row string }{
		{"live", "#/live", "", "tbody tr"},
		{"log", "#/live?log=1", "", "tbody tr"},
		{"call", "#/calls/" + call(few), "#/calls/" + call(many), "h2:has-text('Why')"},
		{"tools", "#/tools", "", "tbody tr"},
		{"search", "#/tools?q=tool", "", "tbody tr"},
		{"method", "#/tools/tool_3/net", "#/tools/tool_3_077/net", "pre"},
		{"calls of a method", "#/tools/tool_3/net?tab=calls", "#/tools/tool_3_077/net?tab=calls", "tbody tr"},
		{"inbox", "#/inbox", "", "ul.entries > li"},
		{"sessions", "#/sessions", "", "tbody tr"},
		{"history", "#/sessions/" + session(few), "#/sessions/" + session(many), "tbody tr"},
		{"usage of methods", "#/usage?by=method", "", "table"},
		{"policy", "#/policy", "", ".switch"},
		{"audit", "#/audit", "", "tbody tr"},
	} {
		if page.many == "" {
			page.many = page.few
		}
		var a, z []float64
		elements, ratio := 0.0, 0.0
		for len(a) < loads || ratio > dearer && len(a) < 5*loads { // what stood in the way for once does so no more
			time, _ := small.cost(page.few, page.row) // in turn, so that both meet the same load
			a = append(a, time)
			time, elements = large.cost(page.many, page.row)
			z = append(z, time)
			slices.Sort(a)
			slices.Sort(z)
			ratio = z[len(z)/2] / a[len(a)/2]
		}
		t.Logf("%-18s %6.1f ms for ten, %6.1f ms for many: %.2f, %v elements", page.name, a[len(a)/2], z[len(z)/2],
			ratio, elements)
		if ratio > dearer {
			t.Errorf("%s: the scripts take %.1f times what they take for ten rows", page.name, ratio)
		}
		if elements > maxElements {
			t.Errorf("%s has %v elements, at most %v are wanted", page.name, elements, maxElements)
		}
	}
	lists(t, large)
	small.clean()
	large.clean()
}

// lists leads through lists that are longer than a page: the server pages, searches and sorts them.
func lists(t *testing.T, p *page) {
	first := func(column int) string {
		p.t.Helper()
		p.gone("[aria-busy=true]")
		s, _ := p.do("innerText", fmt.Sprintf("main tbody tr:first-child td:nth-child(%d)", column)).(string)
		return s
	}
	turn := func(hash, row string) {
		p.t.Helper()
		p.at(hash)
		p.sees(row)
		seen := map[string]bool{}
		for range 2 {
			rows := p.do("allInnerTexts", row).([]any)
			shown := fmt.Sprint(rows)
			for _, r := range rows {
				if seen[r.(string)] {
					t.Errorf("%s shows %q on two pages", hash, r)
				}
				seen[r.(string)] = true
			}
			at := p.do("evaluate", "location.hash")
			p.click("a[rel=next]")
			p.sees("a:text-is('First page')")
			rig.Until(t, "next page of "+hash, func() bool { // the old rows stay until the new ones are there
				next := p.do("allInnerTexts", row).([]any)
				return len(next) > 0 && fmt.Sprint(next) != shown
			})
			if p.do("evaluate", "location.hash") == at {
				t.Errorf("%s: the next page has no address of its own", hash)
			}
		}
		third := p.do("evaluate", "location.hash").(string)
		p.click("a:text-is('Previous page')")
		p.gone("a:text-is('Previous page')") // the second, before which there is the first alone
		p.sees("a:text-is('First page')", row)
		p.at(third) // as somebody was sent it
		p.sees("a:text-is('First page')", row)
		p.lacks("a:text-is('Previous page')")
		p.click("a:text-is('First page')")
		p.gone("a:text-is('First page')")
	}
	turn("#/tools", "main tbody tr td:first-child")
	turn("#/live?log=1", "main tbody tr td:first-child a")
	turn("#/usage?by=method", "main table[aria-label='Usage by method'] tbody tr td:first-child")
	turn("#/inbox", "ul.entries > li h2")

	p.at("#/tools?sort=used")
	p.sees("tbody tr")
	var most int64
	for n := range toolCopies {
		for i := range 10 {
			most = max(most, uses(n, i))
		}
	}
	if used := strings.ReplaceAll(first(5), ",", ""); used != fmt.Sprint(most) {
		t.Errorf("the most used tool has %s uses, want %d", used, most)
	}
	p.fill("input[type=search]", "tool_3_077")
	p.do("press", "input[type=search]", "Enter")
	p.gone("tbody tr:nth-child(2)")
	p.sees("td a:text-is('tool_3_077')")
	p.do("reload")
	p.sees("td a:text-is('tool_3_077')")
	p.lacks("tbody tr:nth-child(2)")
	p.fill("input[type=search]", "no such tool")
	p.do("press", "input[type=search]", "Enter")
	p.sees("text=Nothing matches.")
}

// maxElements bounds what a page consists of, whatever is stored.
const maxElements = 3000

// cost loads an address of the console and returns the processor time of its scripts, in milliseconds, and its
// elements.
func (p *page) cost(hash, selector string) (time, elements float64) {
	p.t.Helper()
	got := p.do("cost", p.url+"/ui/"+hash, selector).([]any)
	return got[0].(float64), got[1].(float64)
}
