package tool

import (
	"net/url"
	"strings"

	"recurgent"
	"recurgent/html"
)

func Run(call *recurgent.Call) (any, error) {
	in, err := call.Open(call.Arg(0, "page"))
	if err != nil {
		return nil, err
	}
	doc, err := html.Parse(in)
	if err != nil {
		return nil, recurgent.Fail("invalid_input", "the file is no page: "+err.Error())
	}
	base, err := url.Parse(doc.Find("base").First().AttrOr("href", ""))
	if err != nil {
		return nil, recurgent.Fail("invalid_input", "the page's base is no address")
	}
	out := []map[string]string{}
	for _, a := range doc.Find("li.oferta a").All() {
		link, err := base.Parse(a.AttrOr("href", ""))
		if err != nil {
			continue
		}
		out = append(out, map[string]string{"title": strings.Join(strings.Fields(a.Text()), " "), "link": link.String()})
	}
	return out, nil
}
