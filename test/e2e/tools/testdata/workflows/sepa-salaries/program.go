package tool

import (
	"encoding/csv"
	"encoding/xml"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"recurgent"
)

type transfer struct {
	EndToEndID string `xml:"PmtId>EndToEndId"`
	Amount     struct {
		Currency string `xml:"Ccy,attr"`
		Value    string `xml:",chardata"`
	} `xml:"Amt>InstdAmt"`
	Name string `xml:"Cdtr>Nm"`
	IBAN string `xml:"CdtrAcct>Id>IBAN"`
}

type document struct {
	XMLName xml.Name `xml:"urn:iso:std:iso:20022:tech:xsd:pain.001.001.03 Document"`
	Header  struct {
		MsgID   string `xml:"MsgId"`
		Created string `xml:"CreDtTm"`
		Count   int    `xml:"NbOfTxs"`
		Sum     string `xml:"CtrlSum"`
	} `xml:"CstmrCdtTrfInitn>GrpHdr"`
	Payment struct {
		ID        string     `xml:"PmtInfId"`
		Method    string     `xml:"PmtMtd"`
		Day       string     `xml:"ReqdExctnDt"`
		Transfers []transfer `xml:"CdtTrfTxInf"`
	} `xml:"CstmrCdtTrfInitn>PmtInf"`
}

var plainLetters = strings.NewReplacer("ä", "ae", "ö", "oe", "ü", "ue", "Ä", "Ae", "Ö", "Oe", "Ü", "Ue", "ß", "ss", "&", "+", "ë", "e", "é", "e", "è", "e", "á", "a", "à", "a", "å", "a", "Å", "A", "ç", "c", "ñ", "n", "ø", "o", "Ø", "O")

// sepa leaves the characters that SEPA allows.
func sepa(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/-?:().,'+ ", r) {
			return r
		}
		return ' '
	}, plainLetters.Replace(s))
	s = strings.Join(strings.Fields(s), " ")
	return s[:min(len(s), most)]
}

func validIBAN(iban string) bool {
	if len(iban) < 15 || len(iban) > 34 {
		return false
	}
	digits := ""
	for _, c := range iban[4:] + iban[:4] {
		switch {
		case c >= '0' && c <= '9':
			digits += string(c)
		case c >= 'A' && c <= 'Z':
			digits += strconv.Itoa(int(c-'A') + 10)
		default:
			return false
		}
	}
	n, ok := new(big.Int).SetString(digits, 10)
	return ok && n.Mod(n, big.NewInt(97)).Cmp(big.NewInt(1)) == 0
}

func euros(cents int64) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }

func Run(call *recurgent.Call) (any, error) {
	var in struct {
		File      any    `json:"file"`
		Day       string `json:"day"`
		MessageID string `json:"message_id"`
		Created   string `json:"created"`
	}
	if err := call.Bind(&in); err != nil {
		return nil, recurgent.Fail("invalid_input", err.Error())
	}
	if _, err := time.Parse("2006-01-02", in.Day); err != nil {
		return nil, recurgent.Fail("invalid_input", "day must be YYYY-MM-DD")
	}
	if _, err := time.Parse("2006-01-02T15:04:05", strings.TrimSuffix(in.Created, "Z")); err != nil {
		return nil, recurgent.Fail("invalid_input", "created must be YYYY-MM-DDThh:mm:ss")
	}
	if in.MessageID == "" || len(in.MessageID) > 35 {
		return nil, recurgent.Fail("invalid_input", "message_id must have 1 to 35 characters")
	}
	text, err := call.OpenText(in.File)
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(text)
	r.Comma = ';'
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		return nil, recurgent.Fail("invalid_input", err.Error())
	}
	var doc document
	var total int64
	for i, row := range rows {
		if i == 0 || len(row) < 3 || strings.TrimSpace(row[1]) == "" {
			continue // the header, an empty row, the total
		}
		iban := strings.ToUpper(strings.ReplaceAll(row[1], " ", ""))
		if !validIBAN(iban) {
			return nil, recurgent.Fail("invalid_input", fmt.Sprintf("row %d: %s is no IBAN", i+1, row[1]))
		}
		whole, frac, _ := strings.Cut(strings.ReplaceAll(strings.TrimSpace(row[2]), ".", ""), ",")
		for len(frac) < 2 {
			frac += "0"
		}
		cents, err := strconv.ParseInt(whole+frac, 10, 64)
		if err != nil || len(frac) > 2 || cents <= 0 {
			return nil, recurgent.Fail("invalid_input", fmt.Sprintf("row %d: %q is no amount", i+1, row[2]))
		}
		t := transfer{EndToEndID: fmt.Sprintf("%s-%d", in.MessageID, len(doc.Payment.Transfers)+1), Name: sepa(row[0], 70), IBAN: iban}
		t.Amount.Currency, t.Amount.Value = "EUR", euros(cents)
		doc.Payment.Transfers = append(doc.Payment.Transfers, t)
		total += cents
	}
	if len(doc.Payment.Transfers) == 0 {
		return nil, recurgent.Fail("invalid_input", "the list has no payments")
	}
	doc.Header.MsgID, doc.Header.Created, doc.Header.Count, doc.Header.Sum = in.MessageID, in.Created, len(doc.Payment.Transfers), euros(total)
	doc.Payment.ID, doc.Payment.Method, doc.Payment.Day = in.MessageID, "TRF", in.Day
	f, err := call.Create("gehaelter.xml", "text/xml")
	if err != nil {
		return nil, err
	}
	if _, err := f.Write([]byte(xml.Header)); err != nil {
		return nil, err
	}
	enc := xml.NewEncoder(f)
	enc.Indent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return nil, err
	}
	fmt.Fprintln(f)
	if err := f.Close(); err != nil {
		return nil, err
	}
	return map[string]any{"file": f.Ref(), "payments": doc.Header.Count, "total": euros(total)}, nil
}
