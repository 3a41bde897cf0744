package cli

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
)

// Bounds of a completion: the time that a person waits after pressing tab, and the number of candidates.
const (
	completionTime = time.Second
	maxCompletions = 200
)

// completeArgs sets the shell completion of a command's arguments by the words of its usage: ROLE, METHOD and, if
// policy is set, NAME. It asks the daemon, and completes nothing if none answers.
func completeArgs(sh Shell, c *cobra.Command, policy bool) {
	_, usage, _ := strings.Cut(c.Use, " ")
	words := strings.Fields(strings.NewReplacer("[", "", "]", "").Replace(usage))
	c.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		word := ""
		if len(words) > 0 {
			word = words[min(len(args), len(words)-1)]
		}
		switch {
		case policy && strings.HasPrefix(word, "NAME=VALUE"):
			return sh.ask(cmd, typed, policyNames("=")),
				cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		case policy && word == "NAME":
			return sh.ask(cmd, typed, policyNames("")), cobra.ShellCompDirectiveNoFileComp
		case word == "ROLE" && len(args) < len(words):
			return sh.ask(cmd, typed, roles(typed)), cobra.ShellCompDirectiveNoFileComp
		case word == "METHOD" && len(args) < len(words) && len(args) > 0:
			return sh.ask(cmd, typed, methods(args[len(args)-1])), cobra.ShellCompDirectiveNoFileComp
		case strings.HasPrefix(word, "FILE"), strings.HasPrefix(word, "DIR"), strings.HasPrefix(word, "PATH"):
			return nil, cobra.ShellCompDirectiveDefault
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// ask returns the listed names that begin with typed, or nothing if the daemon does not answer.
func (sh Shell) ask(cmd *cobra.Command, typed string, list func(context.Context, *client.Client) ([]string,
	error)) (out []string) {
	o, err := loadOptions(ClientScope, cmd.Flags(), sh.Env)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionTime)
	defer cancel()
	all, err := list(ctx, client.New(o.URL, o.Token, o.roots).In(o.Namespace))
	if err != nil {
		return nil
	}
	for _, name := range all {
		if strings.HasPrefix(name, typed) && len(out) < maxCompletions {
			out = append(out, name)
		}
	}
	return out
}

// roles returns a lister of known tools with their purposes.
func roles(typed string) func(context.Context, *client.Client) ([]string, error) {
	return func(ctx context.Context, c *client.Client) (out []string, err error) {
		var page struct {
			Data []struct{ Role, Purpose string }
		}
		err = c.Get(ctx, "/v1/tools?limit=200&q="+url.QueryEscape(typed), &page)
		for _, t := range page.Data {
			out = append(out, described(t.Role, t.Purpose))
		}
		return out, err
	}
}

// methods returns a lister of a role's methods that have programs.
func methods(role string) func(context.Context, *client.Client) ([]string, error) {
	return func(ctx context.Context, c *client.Client) (out []string, err error) {
		var page struct {
			Data []struct {
				Method string `json:"method_name"`
			}
		}
		err = c.Get(ctx, client.ToolPath(role)+"/methods?limit=200", &page)
		for _, m := range page.Data {
			out = append(out, m.Method)
		}
		return out, err
	}
}

// policyNames returns a lister of the policy's field names, with nested ones dotted, each followed by after.
func policyNames(after string) func(context.Context, *client.Client) ([]string, error) {
	return func(ctx context.Context, c *client.Client) (out []string, err error) {
		data, err := c.Do(ctx, http.MethodGet, "/v1/policy", nil)
		if err != nil {
			return nil, err
		}
		var add func(prefix string, part json.RawMessage)
		add = func(prefix string, part json.RawMessage) {
			var members map[string]json.RawMessage
			if json.Unmarshal(part, &members) != nil { // not an object
				out = append(out, prefix+after)
				return
			}
			if prefix != "" {
				if after == "" {
					out = append(out, prefix)
				}
				prefix += "."
			}
			for _, name := range slices.Sorted(maps.Keys(members)) {
				add(prefix+name, members[name])
			}
		}
		add("", data)
		return out, nil
	}
}

// described returns a completion with the description that shells show.
func described(name, about string) string {
	if about = text.Clean(about, 0); about == "" {
		return name
	}
	return name + "\t" + about
}
