package tool

import (
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"time"

	"recurgent"
)

type sum struct {
	Worked int `json:"worked"`
	Night  int `json:"night"`
}

func clock(day time.Time, text string) (time.Time, error) {
	t, err := time.Parse("15:04", strings.TrimSpace(text))
	if err != nil {
		return t, err
	}
	return time.Date(day.Year(), day.Month(), day.Day(), t.Hour(), t.Minute(), 0, 0, day.Location()), nil
}

func overlap(from, to, a, b time.Time) time.Duration {
	if a.Before(from) {
		a = from
	}
	if b.After(to) {
		b = to
	}
	return max(0, b.Sub(a))
}

func Run(call *recurgent.Call) (any, error) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		return nil, err
	}
	in, err := call.OpenText(call.Arg(0, "sheet"))
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(in)
	r.Comma = ';'
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		return nil, recurgent.Fail("invalid_input", err.Error())
	}
	out := map[string]*sum{}
	for i, row := range rows {
		if i == 0 || len(row) < 5 || strings.TrimSpace(row[0]) == "" {
			continue
		}
		bad := func(what string) error {
			return recurgent.Fail("invalid_input", fmt.Sprintf("row %d: %s", i+1, what))
		}
		day, err := time.ParseInLocation("02.01.2006", strings.TrimSpace(row[1]), berlin)
		if err != nil {
			return nil, bad("no day: " + row[1])
		}
		come, err := clock(day, row[2])
		if err != nil {
			return nil, bad("no time: " + row[2])
		}
		leave, err := clock(day, row[3])
		if err != nil {
			return nil, bad("no time: " + row[3])
		}
		if !leave.After(come) {
			if leave, err = clock(day.AddDate(0, 0, 1), row[3]); err != nil {
				return nil, bad("no time: " + row[3])
			}
		}
		pause := 0
		if p := strings.TrimSpace(row[4]); p != "" {
			if pause, err = strconv.Atoi(p); err != nil {
				return nil, bad("no break: " + p)
			}
		}
		s := out[row[0]]
		if s == nil {
			s = &sum{}
			out[row[0]] = s
		}
		s.Worked += int(leave.Sub(come).Minutes()) - pause
		for d := -1; d <= 1; d++ {
			evening := time.Date(day.Year(), day.Month(), day.Day()+d, 22, 0, 0, 0, berlin)
			morning := time.Date(day.Year(), day.Month(), day.Day()+d+1, 6, 0, 0, 0, berlin)
			s.Night += int(overlap(evening, morning, come, leave).Minutes())
		}
	}
	return out, nil
}
