package cli

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/runtime/spend"
	"github.com/recurgentd/recurgentd/internal/store"
)

// usageFlags holds the flags of recurgentd usage as given.
type usageFlags struct{ by, since, until string }

func usageCommand(sh Shell) *cobra.Command {
	var f usageFlags
	c := operatorCommand(sh, "recurgentd", operation{use: "usage",
		short:   "Report what models were asked, what it cost, what stored programs saved, and what is stored",
		example: "--by owner --since 2026-11-01",
		long: `Report what models were asked, what it cost, and what stored programs saved, by method, role, owner or day; then the
caps of tokens in force with what is used of them; then how many bytes each owner has stored. A dash stands for what is not known: the cost where a model has no
price (serve --model-prices), what was saved where the daemon forged none of the programs. As a key it stands for what
is older than 92 days or beyond 10,000 rows. ESTIMATED counts tokens of requests whose cost nobody reported.

With a token that lacks the scope operate one sees what is one's own. Days are those of UTC.`,
		run: func(t *errand) error { return t.reportUsage(f) }})
	groups := []string{spend.ByRole, spend.ByMethod, spend.ByOwner, spend.ByDay}
	c.Flags().StringVar(&f.by, "by", spend.ByMethod, "what a row stands for: "+strings.Join(groups, ", "))
	c.Flags().StringVar(&f.since, "since", "", "the first day, such as 2026-11-21; or a time on it (default: 30 days)")
	c.Flags().StringVar(&f.until, "until", "", "the last day (default: today)")
	if err := c.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(groups,
		cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic("the flag --by was declared above: " + err.Error())
	}
	return c
}

// path returns the request path of the report.
func (f *usageFlags) path() (string, error) {
	if !slices.Contains([]string{spend.ByRole, spend.ByMethod, spend.ByOwner, spend.ByDay}, f.by) {
		return "", fmt.Errorf("--by must be role, method, owner or day, got %q", f.by)
	}
	v := url.Values{"by": {f.by}}
	for name, given := range map[string]string{"since": f.since, "until": f.until} {
		if given == "" {
			continue
		}
		at, err := time.Parse(time.DateOnly, given)
		if err != nil {
			at, err = time.Parse(time.RFC3339, given)
		}
		if err != nil {
			return "", fmt.Errorf("--%s must be a day such as 2026-11-21 or a time such as 2026-11-21T02:10:00Z, got %q", name, given)
		}
		v.Set(name, at.Format(time.RFC3339))
	}
	return "/v1/usage?" + v.Encode(), nil
}

// reportUsage prints the usage, the caps, and the bytes stored by owners.
func (t *errand) reportUsage(f usageFlags) error {
	path, err := f.path()
	if err != nil {
		return exitWith(ExitUsage, err)
	}
	var r spend.UsageReport
	if printed, err := t.fetch(path, &r); printed || err != nil {
		return err
	}
	if err := t.table(strings.ToUpper(f.by)+
		" CALLS WARM REQUESTS PROMPT CACHED COMPLETION ESTIMATED COST SAVED-REQUESTS SAVED-TOKENS SAVED-COST",
		usageTable(&r)); err != nil {
		return err
	}
	if err := t.caps(&r); err != nil {
		return err
	}
	return t.stored(path, &r)
}

func (t *errand) caps(r *spend.UsageReport) error {
	if len(r.Limits) == 0 {
		return t.out.line("\nno caps")
	}
	if err := t.out.line(""); err != nil {
		return err
	}
	var rows [][]string
	for _, l := range r.Limits {
		rows = append(rows, []string{l.Scope, l.Name, l.Window, fmt.Sprint(l.Limit), fmt.Sprint(l.Used),
			fmt.Sprint(l.Reserved), l.ResetsAt.UTC().Format(time.RFC3339)})
	}
	return t.table("SCOPE NAME WINDOW LIMIT USED RESERVED RESETS-AT", rows)
}

// stored prints the bytes stored by owners, fetching the pages after the report's.
func (t *errand) stored(path string, r *spend.UsageReport) error {
	var rows [][]string
	for page := r; ; {
		for _, o := range page.Storage {
			row := []string{o.Owner}
			for _, kind := range store.Kinds() {
				row = append(row, fmt.Sprint(o.Of(kind)))
			}
			rows = append(rows, row)
		}
		if page.StorageNext == nil || len(page.Storage) == 0 {
			break
		}
		at := path + "&storage_after=" + url.QueryEscape(*page.StorageNext)
		page = &spend.UsageReport{}
		if _, err := t.fetch(at, page); err != nil {
			return err
		}
	}
	if len(rows) == 0 { // nothing, or an older daemon that does not report it
		return nil
	}
	if err := t.out.line(""); err != nil {
		return err
	}
	return t.table(strings.ToUpper("owner "+strings.Join(store.Kinds(), " ")), rows)
}

func usageTable(r *spend.UsageReport) [][]string {
	count := func(n *int64) string {
		if n == nil {
			return "-"
		}
		return fmt.Sprint(*n)
	}
	money := func(v *float64) string {
		if v == nil {
			return "-"
		}
		return strings.TrimSpace(strconv.FormatFloat(*v, 'f', -1, 64) + " " + text.Clean(r.Currency, 8))
	}
	var rows [][]string
	for _, u := range r.Data {
		rows = append(rows, []string{u.Key, fmt.Sprint(u.Calls), fmt.Sprint(u.WarmCalls), fmt.Sprint(u.ModelRequests),
			fmt.Sprint(u.PromptTokens), fmt.Sprint(u.CachedTokens),
			fmt.Sprint(u.CompletionTokens), fmt.Sprint(u.EstimatedTokens), money(u.Cost), count(u.SavedRequests),
			count(u.SavedTokens), money(u.SavedCost)})
	}
	return rows
}
