package tool

import (
	"encoding/xml"
	"fmt"
	"math/big"

	"recurgent"
)

type invoice struct {
	XMLName xml.Name
	ID      string `xml:"ID"`
	Seller  string `xml:"AccountingSupplierParty>Party>PartyLegalEntity>RegistrationName"`
	Tax     string `xml:"TaxTotal>TaxAmount"`
	Rates   []struct {
		Base    string `xml:"TaxableAmount"`
		Tax     string `xml:"TaxAmount"`
		Percent string `xml:"TaxCategory>Percent"`
	} `xml:"TaxTotal>TaxSubtotal"`
	Total struct {
		Lines   string `xml:"LineExtensionAmount"`
		Net     string `xml:"TaxExclusiveAmount"`
		Prepaid string `xml:"PrepaidAmount"`
		Payable string `xml:"PayableAmount"`
	} `xml:"LegalMonetaryTotal"`
	Lines []string `xml:"InvoiceLine>LineExtensionAmount"`
}

func Run(call *recurgent.Call) (any, error) {
	in, err := call.Open(call.Arg(0, "invoice"))
	if err != nil {
		return nil, err
	}
	var doc invoice
	if err := xml.NewDecoder(in).Decode(&doc); err != nil {
		return nil, recurgent.Fail("invalid_input", "the file is no XML: "+err.Error())
	}
	if doc.XMLName.Local != "Invoice" {
		return nil, recurgent.Fail("invalid_input", "the file is no invoice but "+doc.XMLName.Local)
	}
	var bad error
	amount := func(s string) *big.Rat {
		if s == "" {
			return new(big.Rat)
		}
		r, ok := new(big.Rat).SetString(s)
		if !ok {
			bad = recurgent.Fail("invalid_input", fmt.Sprintf("%q is no amount", s))
			return new(big.Rat)
		}
		return r
	}
	wrong := []string{}
	lines := new(big.Rat)
	for _, l := range doc.Lines {
		lines.Add(lines, amount(l))
	}
	if lines.Cmp(amount(doc.Total.Lines)) != 0 {
		wrong = append(wrong, "lines")
	}
	taxes, cent := new(big.Rat), big.NewRat(1, 100)
	fits := true
	for _, r := range doc.Rates {
		tax := amount(r.Tax)
		taxes.Add(taxes, tax)
		exact := new(big.Rat).Mul(amount(r.Base), new(big.Rat).Quo(amount(r.Percent), big.NewRat(100, 1)))
		off := new(big.Rat).Sub(exact, tax)
		if off.Abs(off).Cmp(cent) > 0 {
			fits = false
		}
	}
	if !fits || taxes.Cmp(amount(doc.Tax)) != 0 {
		wrong = append(wrong, "tax")
	}
	due := new(big.Rat).Add(amount(doc.Total.Net), amount(doc.Tax))
	due.Sub(due, amount(doc.Total.Prepaid))
	if due.Cmp(amount(doc.Total.Payable)) != 0 {
		wrong = append(wrong, "payable")
	}
	if bad != nil {
		return nil, bad
	}
	return map[string]any{"number": doc.ID, "seller": doc.Seller, "payable": doc.Total.Payable, "wrong": wrong}, nil
}
