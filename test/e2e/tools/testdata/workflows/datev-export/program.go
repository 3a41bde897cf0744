package tool

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"recurgent"
)

// latin encodes text in windows-1252; what that has not becomes a question mark.
func latin(s string) []byte {
	const special = "€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ"
	var out []byte
	for _, r := range s {
		if r < 0x80 || r >= 0xa0 && r <= 0xff {
			out = append(out, byte(r))
			continue
		}
		b := byte('?')
		i := 0
		for _, c := range special {
			if c == r {
				b = byte(0x80 + i)
			}
			i++
		}
		out = append(out, b)
	}
	return out
}

func quote(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

func Run(call *recurgent.Call) (any, error) {
	year, ok := call.Arg(1, "year").(float64)
	if !ok || year != float64(int(year)) || year < 1990 || year > 2100 {
		return nil, recurgent.Fail("invalid_input", "year must be a year")
	}
	in, err := call.OpenText(call.Arg(0, "invoices"))
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(in)
	header, err := r.Read()
	if err != nil {
		return nil, recurgent.Fail("invalid_input", "the file has no header")
	}
	col := map[string]int{}
	for i, h := range header {
		col[h] = i
	}
	for _, name := range []string{"Nummer", "Rechnungsdatum", "Kunde", "Name", "Brutto", "MwSt"} {
		if _, ok := col[name]; !ok {
			return nil, recurgent.Fail("invalid_input", "the file has no column "+name)
		}
	}
	accounts := map[string]string{"19": "8400", "7": "8300"}
	var b strings.Builder
	fmt.Fprintf(&b, "\"EXTF\";700;21;\"Buchungsstapel\";12;;;;;;;;%d0101\r\n", int(year))
	b.WriteString("Umsatz;Soll/Haben;Konto;Gegenkonto;Belegdatum;Belegfeld 1;Buchungstext\r\n")
	bookings := 0
	for {
		row, err := r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, recurgent.Fail("invalid_input", err.Error())
		}
		line, _ := r.FieldPos(0)
		day, err := time.Parse("2006-01-02", row[col["Rechnungsdatum"]])
		if err != nil {
			return nil, recurgent.Fail("invalid_input", fmt.Sprintf("line %d: no day", line))
		}
		if day.Year() != int(year) {
			continue
		}
		account, ok := accounts[row[col["MwSt"]]]
		if !ok {
			return nil, recurgent.Fail("invalid_input", fmt.Sprintf("line %d: no account for %s %%", line, row[col["MwSt"]]))
		}
		customer, err := strconv.Atoi(row[col["Kunde"]])
		if err != nil {
			return nil, recurgent.Fail("invalid_input", fmt.Sprintf("line %d: no customer's number", line))
		}
		whole, frac, _ := strings.Cut(row[col["Brutto"]], ".")
		for len(frac) < 2 {
			frac += "0"
		}
		fmt.Fprintf(&b, "%s,%s;\"S\";%d;%s;%s;%s;%s\r\n", whole, frac, 10000+customer, account, day.Format("0201"), quote(row[col["Nummer"]]), quote(row[col["Name"]]))
		bookings++
	}
	f, err := call.Create("EXTF_Buchungsstapel.csv", "text/csv; charset=windows-1252")
	if err != nil {
		return nil, err
	}
	if _, err := f.Write(latin(b.String())); err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	return map[string]any{"bookings": bookings, "file": f.Ref()}, nil
}
