package tool

import (
	"encoding/csv"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"

	"recurgent"
)

type amount struct {
	Text string `xml:",chardata"`
}

type entry struct {
	Amt    amount `xml:"Amt"`
	Ind    string `xml:"CdtDbtInd"`
	Status struct {
		Text string `xml:",chardata"`
		Cd   string `xml:"Cd"`
	} `xml:"Sts"`
	Tx []struct {
		Amt   *amount  `xml:"Amt"`
		Ind   string   `xml:"CdtDbtInd"`
		Ustrd []string `xml:"RmtInf>Ustrd"`
		Ref   string   `xml:"RmtInf>Strd>CdtrRefInf>Ref"`
	} `xml:"NtryDtls>TxDtls"`
}

func point(s string) (int64, error) {
	whole, frac, _ := strings.Cut(strings.TrimSpace(s), ".")
	frac = strings.TrimRight(frac, "0")
	if len(frac) > 2 {
		return 0, fmt.Errorf("%q has parts of cents", s)
	}
	return strconv.ParseInt(whole+(frac + "00")[:2], 10, 64)
}

func comma(s string) (int64, error) {
	return point(strings.ReplaceAll(strings.ReplaceAll(s, ".", ""), ",", "."))
}

func squeeze(s string) string {
	return strings.ToUpper(strings.Join(strings.Fields(s), ""))
}

func Run(call *recurgent.Call) (any, error) {
	in, err := call.OpenText(call.Arg(0, "statement"))
	if err != nil {
		return nil, err
	}
	type payment struct {
		purpose string
		cents   int64
	}
	var payments []payment
	d := xml.NewDecoder(in)
	statement := false
	for {
		tok, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, recurgent.Fail("invalid_input", "statement is no XML: "+err.Error())
		}
		start, ok := tok.(xml.StartElement)
		if !ok {
			continue
		}
		if start.Name.Local == "BkToCstmrStmt" {
			statement = true
		}
		if start.Name.Local != "Ntry" {
			continue
		}
		var e entry
		if err := d.DecodeElement(&e, &start); err != nil {
			return nil, recurgent.Fail("invalid_input", "statement: "+err.Error())
		}
		status := strings.TrimSpace(e.Status.Text) + e.Status.Cd
		if status != "BOOK" {
			continue
		}
		for _, tx := range e.Tx {
			amt, ind := e.Amt, e.Ind
			if tx.Amt != nil {
				amt = *tx.Amt
			}
			if tx.Ind != "" {
				ind = tx.Ind
			}
			cents, err := point(amt.Text)
			if err != nil {
				return nil, recurgent.Fail("invalid_input", "statement: "+err.Error())
			}
			if ind == "DBIT" {
				cents = -cents
			}
			payments = append(payments, payment{squeeze(strings.Join(tx.Ustrd, "") + " " + tx.Ref), cents})
		}
	}
	if !statement {
		return nil, recurgent.Fail("invalid_input", "statement is no camt.053")
	}
	list, err := call.OpenText(call.Arg(1, "invoices"))
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(list)
	r.Comma = ';'
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil || len(rows) == 0 {
		return nil, recurgent.Fail("invalid_input", "invoices is no CSV")
	}
	number, sum := -1, -1
	for i, h := range rows[0] {
		switch strings.TrimSpace(h) {
		case "Rechnung":
			number = i
		case "Betrag":
			sum = i
		}
	}
	if number < 0 || sum < 0 {
		return nil, recurgent.Fail("invalid_input", "invoices must have the columns Rechnung and Betrag")
	}
	out := []map[string]any{}
	for i, row := range rows[1:] {
		if len(row) <= max(number, sum) || strings.TrimSpace(row[number]) == "" {
			continue
		}
		open, err := comma(row[sum])
		if err != nil {
			return nil, recurgent.Fail("invalid_input", fmt.Sprintf("invoices, row %d: %v", i+2, err))
		}
		no := strings.TrimSpace(row[number])
		for _, p := range payments {
			if strings.Contains(p.purpose, squeeze(no)) {
				open -= p.cents
			}
		}
		if open > 0 {
			out = append(out, map[string]any{"invoice": no, "open": fmt.Sprintf("%d.%02d", open/100, open%100)})
		}
	}
	return out, nil
}
