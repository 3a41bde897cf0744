package agent

import (
	"fmt"
	"time"
)

// SpendPolicy caps what the models may be asked for a namespace, in tokens, prompt and completion together. 0 is no cap.
type SpendPolicy struct {
	DayTokens       int `json:"day_tokens"`        // of a day, in UTC
	MonthTokens     int `json:"month_tokens"`      // of a calendar month, in UTC
	MethodDayTokens int `json:"method_day_tokens"` // of a day, of each method
	OwnerDayTokens  int `json:"owner_day_tokens"`  // of a day, of each owner
}

// maxTokens is the highest cap.
const maxTokens = 1_000_000_000_000_000

// Day is a day in UTC, counted from 1 January 1970. In JSON it is a text such as "2026-11-22".
type Day int32

const secondsOfDay = 24 * 60 * 60

// DayOf returns the day of a time.
func DayOf(t time.Time) Day {
	s := t.Unix()
	d := s / secondsOfDay
	if s%secondsOfDay < 0 {
		d--
	}
	return Day(d)
}

// Start returns the day's first moment.
func (d Day) Start() time.Time { return time.Unix(int64(d)*secondsOfDay, 0).UTC() }

// Month returns the first days of the day's month and of the month after it.
func (d Day) Month() (first, next Day) {
	y, m, _ := d.Start().Date()
	return DayOf(time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)), DayOf(time.Date(y, m+1, 1, 0, 0, 0, 0, time.UTC))
}

func (d Day) String() string { return d.Start().Format(time.DateOnly) }

// MarshalText implements encoding.TextMarshaler.
func (d Day) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Day) UnmarshalText(text []byte) error {
	t, err := time.Parse(time.DateOnly, string(text))
	if err != nil {
		return fmt.Errorf("%q is not a day such as 2026-11-22", text)
	}
	*d = DayOf(t)
	return nil
}

// Tokens is what a model was asked and what that cost.
type Tokens struct {
	Requests   int64 `json:"requests"`
	Prompt     int64 `json:"prompt"`
	Cached     int64 `json:"cached,omitempty"` // of Prompt, where the server had them cached
	Completion int64 `json:"completion"`
	// of Prompt and Completion: nobody reported them, so that they are upper estimates
	Estimated int64 `json:"estimated,omitempty"`
}

// Sum is the number of tokens.
func (t Tokens) Sum() int64 { return t.Prompt + t.Completion }

// Add adds other tokens.
func (t *Tokens) Add(u Tokens) {
	t.Requests += u.Requests
	t.Prompt += u.Prompt
	t.Cached += u.Cached
	t.Completion += u.Completion
	t.Estimated += u.Estimated
}

// Spend is one request to a model and what it cost, or at most costs while it is under way.
type Spend struct {
	ID     string `json:"id"`
	Day    Day    `json:"day"` // on which it was sent
	Role   string `json:"role,omitempty"`
	Method string `json:"method,omitempty"`
	Owner  string `json:"owner,omitempty"`
	Model  string `json:"model,omitempty"`
	Tokens
}

// SpendRow is what one owner's calls of one method did on a day, and what the models were asked for them. Where days are
// summed up, because they are old or too many, Role, Method and Owner are "".
type SpendRow struct {
	Day    Day           `json:"day"`
	Role   string        `json:"role,omitempty"`
	Method string        `json:"method,omitempty"`
	Owner  string        `json:"owner,omitempty"`
	Calls  int64         `json:"calls,omitempty"` // that ended, nested ones included
	Warm   int64         `json:"warm,omitempty"`  // of these, answered by a stored program
	Models []ModelTokens `json:"models,omitempty"`
}

// ModelTokens is what one model was asked.
type ModelTokens struct {
	Model string `json:"model"`
	Tokens
}

// ForgeRow is what the programs of a method cost that one model wrote and that were kept.
type ForgeRow struct {
	Role     string `json:"role"`
	Method   string `json:"method"`
	Model    string `json:"model"`
	Programs int64  `json:"programs"`
	Tokens
}
