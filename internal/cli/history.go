package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
)

func historyCommand(sh Shell) *cobra.Command {
	var out *output
	q := historyQuery{filters: map[string]string{}}
	filters := map[string]*string{}
	c := &cobra.Command{
		Use:   "history SESSION",
		Short: "Print a session's history as a conversation",
		Long: `Print a session's history as a conversation, oldest first: who asked what, and how it ended.
Values are not part of a history, only their class. With --output json it prints one record a line.

` + exitsOfClients,
		Example: `  recurgentd history sess_06gzqwq081srb0e6zx42fm96t4
  recurgentd history sess_06gzqwq081srb0e6zx42fm96t4 --last 20 --status error
  recurgentd history sess_06gzqwq081srb0e6zx42fm96t4 --json > history.jsonl`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if q.last < 0 {
				return exitWith(ExitUsage, errors.New("--last must not be negative"))
			}
			q.session = args[0]
			for name, value := range filters {
				q.filters[name] = *value
			}
			return sh.withClient(cmd, func(ctx context.Context, c *client.Client) error {
				return exitWith(ExitUnreachable, printHistory(ctx, c, out, q))
			})
		},
	}
	out = addOutput(c, sh)
	c.Flags().IntVar(&q.last, "last", 0, "print only the newest records; 0 prints all")
	for name, usage := range map[string]string{"method": "only records of this method",
		"role": "only records of this role", "status": "only records that ended so: ok or error",
		"since": "only records from this time on, such as 2026-11-21T02:10:00Z",
		"until": "only records before this time"} {
		filters[name] = c.Flags().String(name, "", usage)
	}
	addFlags(ClientScope, c.Flags())
	return c
}

// A historyQuery selects the records to print.
type historyQuery struct {
	session string
	last    int // only the newest; 0 means all
	// filters holds the query parameters method, role, status, since and until; "" means any.
	filters map[string]string
}

// path returns the request path of the page after the cursor, in that order.
func (q historyQuery) path(order, after string) string {
	v := url.Values{"order": {order}, "limit": {"1000"}}
	for name, value := range q.filters {
		if value != "" {
			v.Set(name, value)
		}
	}
	if after != "" {
		v.Set("after", after)
	}
	return "/v1/sessions/" + url.PathEscape(q.session) + "/history?" + v.Encode()
}

// printHistory prints a history, oldest first. Without --last it holds only one page in memory at a time.
func printHistory(ctx context.Context, c *client.Client, out *output, q historyQuery) error {
	show := func(raw json.RawMessage) (bool, error) { return true, printRecord(out, raw) }
	if q.last == 0 {
		return eachRecord(ctx, c, q, "asc", show)
	}
	newest := []json.RawMessage{}
	err := eachRecord(ctx, c, q, "desc", func(raw json.RawMessage) (bool, error) {
		newest = append(newest, raw)
		return len(newest) < q.last, nil
	})
	if err != nil {
		return err
	}
	for _, raw := range slices.Backward(newest) {
		if err := printRecord(out, raw); err != nil {
			return err
		}
	}
	return nil
}

// eachRecord calls take with each record in that order, until take returns false or an error.
func eachRecord(ctx context.Context, c *client.Client, q historyQuery, order string,
	take func(json.RawMessage) (more bool, err error)) error {
	for after := ""; ; {
		var page struct {
			Data []json.RawMessage `json:"data"`
			Next *string           `json:"next_cursor"`
		}
		if err := c.Get(ctx, q.path(order, after), &page); err != nil {
			return err
		}
		for _, raw := range page.Data {
			if more, err := take(raw); err != nil || !more {
				return err
			}
		}
		if page.Next == nil {
			return nil
		}
		if *page.Next == after {
			return fmt.Errorf("the daemon returned the same next_cursor %q again, so the list is incomplete", after)
		}
		after = *page.Next
	}
}

func printRecord(out *output, raw json.RawMessage) error {
	if !out.human() {
		return out.document(raw)
	}
	var r agent.Record
	if err := json.Unmarshal(raw, &r); err != nil {
		return fmt.Errorf("a record is not in recurgentd's format: %w", err)
	}
	asked, end := conversation(r)
	return out.line("%s\n%s", asked, out.colours().Status(r.OutcomeSummary.Status, end))
}

// conversation formats a record as two lines: the call, and its outcome.
func conversation(r agent.Record) (asked, ended string) {
	indent := strings.Repeat("  ", min(r.Depth, 20))
	args := arguments(r)
	if len(r.Kwargs) > len("{}") {
		args = strings.TrimPrefix(args+", "+text.OneLine(text.JSON(r.Kwargs)), ", ")
	}
	end := r.OutcomeSummary.ValueClass
	if !r.OutcomeSummary.OK {
		end = r.ErrorType + ": " + text.OneLine(r.ErrorMessage)
	}
	return text.Plain(fmt.Sprintf("%s%4d  %s  %s: %s.%s(%s)", indent, r.Seq, r.Timestamp, r.Speaker, r.Role,
			r.MethodName, args)),
		text.Plain(fmt.Sprintf("%s      -> %s (%s, %.1f ms)", indent, end, r.ProgramSource, r.DurationMs))
}
