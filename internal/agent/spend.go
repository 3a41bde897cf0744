package agent

import (
	"fmt"
	"time"
)

// SpendPolicy caps a namespace's model tokens, prompt and completion together. 0 means no cap.
type SpendPolicy struct {
	DayTokens       int `json:"day_tokens"`        // per day, in UTC
	MonthTokens     int `json:"month_tokens"`      // per calendar month, in UTC
	MethodDayTokens int `json:"method_day_tokens"` // per day and method
	OwnerDayTokens  int `json:"owner_day_tokens"`  // per day and owner
}

// maxTokens is the largest allowed cap.
const maxTokens = 1_000_000_000_000_000

// Day is a day in UTC, counted from 1 January 1970. In JSON it is a string such as "2026-11-22".
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

// Start returns midnight UTC at the beginning of the day.
func (d Day) Start() time.Time { return time.Unix(int64(d)*secondsOfDay, 0).UTC() }

// Month returns the first day of the day's month and the first day of the next month.
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

// Tokens counts requests to models and their tokens.
type Tokens struct {
	Requests   int64 `json:"requests"`
	Prompt     int64 `json:"prompt"`
	Cached     int64 `json:"cached,omitempty"` // the part of Prompt that the server had cached
	Completion int64 `json:"completion"`
	// Estimated is the part of Prompt and Completion that nobody reported. It is an upper estimate.
	Estimated int64 `json:"estimated,omitempty"`
}

// Sum returns the number of tokens, prompt and completion.
func (t Tokens) Sum() int64 { return t.Prompt + t.Completion }

// Add adds u to t.
func (t *Tokens) Add(u Tokens) {
	t.Requests += u.Requests
	t.Prompt += u.Prompt
	t.Cached += u.Cached
	t.Completion += u.Completion
	t.Estimated += u.Estimated
}

// Spend is one request to a model with its cost, or with its maximum cost while it is in flight.
type Spend struct {
	ID     string `json:"id"`
	Day    Day    `json:"day"` // the day on which it was sent
	Role   string `json:"role,omitempty"`
	Method string `json:"method,omitempty"`
	Owner  string `json:"owner,omitempty"`
	Model  string `json:"model,omitempty"`
	Tokens
}

// SpendRow sums one day's calls of one method by one owner, and the model requests made for them. In summaries of days
// that are old or have too many rows, Role, Method and Owner are "".
type SpendRow struct {
	Day    Day           `json:"day"`
	Role   string        `json:"role,omitempty"`
	Method string        `json:"method,omitempty"`
	Owner  string        `json:"owner,omitempty"`
	Calls  int64         `json:"calls,omitempty"` // that have ended, including nested ones
	Warm   int64         `json:"warm,omitempty"`  // the part of Calls that a stored program answered
	Models []ModelTokens `json:"models,omitempty"`
}

// ModelTokens counts the requests to one model.
type ModelTokens struct {
	Model string `json:"model"`
	Tokens
}

// ForgeRow sums the cost of the kept programs of one method that one model wrote.
type ForgeRow struct {
	Role     string `json:"role"`
	Method   string `json:"method"`
	Model    string `json:"model"`
	Programs int64  `json:"programs"`
	Tokens
}
