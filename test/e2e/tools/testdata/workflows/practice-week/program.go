package tool

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"recurgent"
)

type appointment struct {
	Start string `json:"start"`
	End   string `json:"end"`
	Title string `json:"title"`
	at    time.Time
}

type event struct {
	start, end time.Time
	length     time.Duration
	days       bool
	title      string
	rule       map[string]string
	except     []time.Time
	canceled   bool
}

func param(head, name string) string {
	for _, p := range strings.Split(head, ";")[1:] {
		if k, v, ok := strings.Cut(p, "="); ok && strings.EqualFold(k, name) {
			return strings.Trim(v, `"`)
		}
	}
	return ""
}

func parseTime(value, zone string, local *time.Location) (t time.Time, day bool, err error) {
	if len(value) == 8 {
		t, err = time.ParseInLocation("20060102", value, local)
		return t, true, err
	}
	loc := local
	if strings.HasSuffix(value, "Z") {
		loc, value = time.UTC, strings.TrimSuffix(value, "Z")
	} else if zone != "" {
		if loc, err = time.LoadLocation(zone); err != nil {
			loc = local
		}
	}
	t, err = time.ParseInLocation("20060102T150405", value, loc)
	return t.In(local), false, err
}

// parseDuration reads PT1H30M, P1D and P1W.
func parseDuration(s string) time.Duration {
	var total time.Duration
	n := 0
	for _, c := range strings.TrimPrefix(s, "P") {
		unit := map[rune]time.Duration{'W': 7 * 24 * time.Hour, 'D': 24 * time.Hour, 'H': time.Hour, 'M': time.Minute, 'S': time.Second}[c]
		if c >= '0' && c <= '9' {
			n = n*10 + int(c-'0')
		} else if unit > 0 {
			total += time.Duration(n) * unit
			n = 0
		}
	}
	return total
}

func Run(call *recurgent.Call) (any, error) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		return nil, err
	}
	text, _ := call.Arg(1, "monday").(string)
	from, err := time.ParseInLocation("2006-01-02", text, berlin)
	if err != nil || from.Weekday() != time.Monday {
		return nil, recurgent.Fail("invalid_input", "monday must be a Monday, YYYY-MM-DD")
	}
	to := from.AddDate(0, 0, 7)
	in, err := call.OpenText(call.Arg(0, "calendar"))
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(string(data), "BEGIN:VCALENDAR") {
		return nil, recurgent.Fail("invalid_input", "the file is no iCalendar")
	}
	unfolded := strings.NewReplacer("\r\n ", "", "\r\n\t", "", "\n ", "", "\n\t", "", "\r\n", "\n").Replace(string(data))
	unescape := strings.NewReplacer(`\,`, ",", `\;`, ";", `\n`, " ", `\N`, " ", `\\`, `\`)
	var events []event
	var within []string
	for _, line := range strings.Split(unfolded, "\n") {
		head, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		if i := strings.IndexByte(head, '"'); i >= 0 && strings.Count(head, `"`)%2 == 1 {
			end := strings.IndexByte(line[i+1:], '"') + i + 1
			j := strings.IndexByte(line[end:], ':')
			head, value = line[:end+j], line[end+j+1:]
		}
		name, _, _ := strings.Cut(strings.ToUpper(head), ";")
		switch name {
		case "BEGIN":
			within = append(within, strings.ToUpper(value))
			if strings.EqualFold(value, "VEVENT") {
				events = append(events, event{})
			}
			continue
		case "END":
			if len(within) > 0 {
				within = within[:len(within)-1]
			}
			continue
		}
		if len(within) == 0 || within[len(within)-1] != "VEVENT" {
			continue
		}
		e := &events[len(events)-1]
		switch name {
		case "SUMMARY":
			e.title = unescape.Replace(value)
		case "STATUS":
			e.canceled = strings.EqualFold(value, "CANCELLED")
		case "DTSTART":
			if e.start, e.days, err = parseTime(value, param(head, "TZID"), berlin); err != nil {
				return nil, recurgent.Fail("invalid_input", "no time: "+line)
			}
		case "DTEND":
			if e.end, _, err = parseTime(value, param(head, "TZID"), berlin); err != nil {
				return nil, recurgent.Fail("invalid_input", "no time: "+line)
			}
		case "DURATION":
			e.length = parseDuration(value)
		case "EXDATE":
			for _, v := range strings.Split(value, ",") {
				if t, _, err := parseTime(v, param(head, "TZID"), berlin); err == nil {
					e.except = append(e.except, t)
				}
			}
		case "RRULE":
			e.rule = map[string]string{}
			for _, p := range strings.Split(value, ";") {
				if k, v, ok := strings.Cut(p, "="); ok {
					e.rule[strings.ToUpper(k)] = strings.ToUpper(v)
				}
			}
		}
	}
	out := []appointment{}
	for _, e := range events {
		if e.canceled || e.start.IsZero() {
			continue
		}
		starts := []time.Time{e.start}
		if e.rule["FREQ"] == "WEEKLY" {
			every, err := strconv.Atoi(e.rule["INTERVAL"])
			if err != nil || every < 1 {
				every = 1
			}
			count, _ := strconv.Atoi(e.rule["COUNT"])
			until := to
			if v := e.rule["UNTIL"]; v != "" {
				t, day, err := parseTime(v, "", berlin)
				if err == nil && day {
					t = t.AddDate(0, 0, 1).Add(-time.Second)
				}
				if err == nil && t.Before(until) {
					until = t
				}
			}
			for i := 1; count == 0 || i < count; i++ {
				next := e.start.AddDate(0, 0, 7*every*i)
				if next.After(until) {
					break
				}
				starts = append(starts, next)
			}
		}
		length := e.length
		if !e.end.IsZero() {
			length = e.end.Sub(e.start)
		}
		for _, s := range starts {
			if s.Before(from) || !s.Before(to) || slices.ContainsFunc(e.except, s.Equal) {
				continue
			}
			a := appointment{Title: e.title, at: s}
			if e.days {
				days := max(1, int(length.Hours()+12)/24)
				a.Start, a.End = s.Format("2006-01-02"), s.AddDate(0, 0, days-1).Format("2006-01-02")
			} else {
				a.Start, a.End = s.Format("2006-01-02 15:04"), s.Add(length).Format("2006-01-02 15:04")
			}
			out = append(out, a)
		}
	}
	slices.SortStableFunc(out, func(a, b appointment) int { return a.at.Compare(b.at) })
	return out, nil
}
