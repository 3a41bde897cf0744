package cli

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
)

// effectsCommands returns the commands that show and approve what programs may reach.
func effectsCommands(sh Shell) []*cobra.Command {
	show := operatorCommand(sh, "recurgentd tools", operation{use: "effects ROLE METHOD",
		short:   "Show what a method's programs may reach, and what each generation did",
		example: "shop rate", least: 2, most: 2, run: (*errand).effects})
	var more agent.Effects
	var only bool
	allow := operatorCommand(sh, "recurgentd tools", operation{use: "allow ROLE METHOD",
		short: "Let a method's programs reach more: hosts, HTTP methods, tools",
		long: `Approve what a method's programs may reach, for the policy effects: enforce. What is named comes to
what the manifest holds; with --only it takes its place. A star allows everything of the kind.`,
		example: `shop rate --host api.example.org --reason "the new source of rates"`, least: 2, most: 2,
		audited: true, run: func(t *errand) error {
			return t.allow(more, only)
		}})
	f := allow.Flags()
	f.StringSliceVar(&more.Hosts, "host", nil, "a host: api.example.org, localhost:8080, *.example.org or *")
	f.StringSliceVar(&more.Methods, "http-method", nil, "an HTTP method, such as POST, or *")
	f.StringSliceVar(&more.Tools, "tool", nil, "a tool's method, as ROLE.METHOD, or *")
	f.BoolVar(&only, "only", false, "allow these and nothing else of their kind")
	return []*cobra.Command{show, allow}
}

func (t *errand) effects() error {
	var e operator.MethodEffects
	if printed, err := t.fetch(client.MethodPath(t.args[0], t.args[1])+"/effects", &e); printed || err != nil {
		return err
	}
	return t.showEffects(&e)
}

func (t *errand) showEffects(e *operator.MethodEffects) error {
	if err := t.out.line("%s.%s may reach: %s\npolicy effects: %s", text.Cell(e.Role), text.Cell(e.MethodName),
		manifestLine(&e.Manifest), text.Cell(e.Policy)); err != nil {
		return err
	}
	var rows [][]string
	for _, g := range e.Generations {
		did := "no ok call yet; its text names " + listOr(g.NamedHosts, "no host")
		if g.Did != nil {
			did = effectsLine(g.Did)
		}
		rows = append(rows, []string{g.ID, did, effectsLine(&g.Lacks), listOr(g.NewHosts, "-")})
	}
	return t.table("GENERATION DID LACKS NEW_HOSTS", rows)
}

// allow adds to the manifest, or with only replaces its lists.
func (t *errand) allow(more agent.Effects, only bool) error {
	if more.Empty() {
		return exitWith(ExitUsage, errors.New("say what to allow: --host, --http-method or --tool"))
	}
	path := client.MethodPath(t.args[0], t.args[1]) + "/effects"
	var now operator.MethodEffects
	// Send the revision that was read, so that a change made in between is refused instead of overwritten.
	match := ""
	if !only {
		var missing *client.Refusal
		switch err := t.c.Get(t.ctx, path, &now); {
		case errors.As(err, &missing) && missing.Status == http.StatusNotFound: // its programs do not exist yet
		case err != nil:
			return err
		case now.Revision > 0:
			match = fmt.Sprintf("%q", fmt.Sprint(now.Revision))
		}
	}
	body := map[string]any{}
	for _, l := range []struct {
		name      string
		has, more []string
	}{{"hosts", now.Hosts, more.Hosts}, {"methods", now.Methods, more.Methods}, {"tools", now.Tools, more.Tools}} {
		if len(l.more) > 0 {
			body[l.name] = append(slices.Clone(l.has), l.more...)
		}
	}
	t.withReason(body)
	data, err := t.c.DoIf(t.ctx, http.MethodPut, path, match, body)
	if err != nil {
		return err
	}
	if !t.out.human() {
		return t.out.document(data)
	}
	if err := t.read(path, data, &now); err != nil {
		return err
	}
	return t.showEffects(&now)
}

func manifestLine(m *agent.Manifest) string {
	switch {
	case m == nil || m.Revision == 0:
		return "anything; the first ok call writes the manifest"
	case m.ApprovedBy != "":
		return effectsLine(&m.Effects) + ", as " + text.Cell(m.ApprovedBy) + " approved"
	}
	return effectsLine(&m.Effects) + ", as its calls did"
}

// effectsLine formats effects on one line.
func effectsLine(e *agent.Effects) string {
	var parts []string
	for _, l := range []struct {
		kind string
		list []string
	}{{"hosts", e.Hosts}, {"methods", e.Methods}, {"tools", e.Tools}, {"files", e.Files}} {
		if len(l.list) > 0 {
			parts = append(parts, l.kind+" "+listOr(l.list, ""))
		}
	}
	return listOr(parts, "nothing")
}

// beyondHosts returns the effects, other than hosts, that the generation may have and its predecessor never had; "" if
// there are none.
func beyondHosts(g *agent.Generation) string {
	if g.Beyond == nil || len(g.Beyond.Methods)+len(g.Beyond.Tools) == 0 {
		return ""
	}
	return effectsLine(&agent.Effects{Methods: g.Beyond.Methods, Tools: g.Beyond.Tools})
}

func listOr(list []string, otherwise string) string {
	if len(list) == 0 {
		return otherwise
	}
	return text.Clean(strings.Join(list, ", "), 400)
}

// effectsDiff returns a line for each effect that one generation has and the other lacks.
func effectsDiff(from, to *agent.Generation) []string {
	var lines []string
	gone, come := from.Reach().Without(to.Reach()), to.Reach().Without(from.Reach())
	for _, side := range []struct {
		mark string
		what agent.Effects
	}{{"-", gone}, {"+", come}} {
		for _, l := range []struct {
			verb string
			list []string
		}{{"reaches ", side.what.Hosts}, {"sends ", side.what.Methods}, {"calls ", side.what.Tools},
			{"makes ", side.what.Files}} {
			for _, name := range l.list {
				lines = append(lines, side.mark+l.verb+text.Cell(name))
			}
		}
	}
	return lines
}
