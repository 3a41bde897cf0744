package tool

import (
	"encoding/base64"
	"errors"
	"io"
	"mime/quotedprintable"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"recurgent"
)

var high = []rune("€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ")

// decode reads text of a character set that mails have.
func decode(data []byte, charset string) (string, error) {
	switch strings.ToLower(charset) {
	case "", "utf-8", "us-ascii":
		if utf8.Valid(data) {
			return string(data), nil
		}
	case "iso-8859-1", "iso-8859-15", "windows-1252":
	default:
		return "", errors.New("the character set " + charset + " is not known here")
	}
	var b strings.Builder
	for _, c := range data {
		if c >= 0x80 && c < 0xa0 {
			b.WriteRune(high[c-0x80])
		} else {
			b.WriteRune(rune(c))
		}
	}
	return b.String(), nil
}

var (
	word    = regexp.MustCompile(`=\?([^?*]+)(?:\*[^?]*)?\?([bBqQ])\?([^?]*)\?=`)
	between = regexp.MustCompile(`\?=\s+=\?`)
	address = regexp.MustCompile(`<([^<>]+)>`)
	item    = regexp.MustCompile(`(?m)^\s*(\d+)\s*x\s+Art\.\s*(\S+)\s*$`)
)

func header(s string) string {
	s = between.ReplaceAllString(s, "?==?")
	return word.ReplaceAllStringFunc(s, func(w string) string {
		m := word.FindStringSubmatch(w)
		var data []byte
		var err error
		if strings.EqualFold(m[2], "b") {
			data, err = base64.StdEncoding.DecodeString(m[3])
		} else {
			data, err = io.ReadAll(quotedprintable.NewReader(strings.NewReader(strings.ReplaceAll(m[3], "_", " "))))
		}
		if err != nil {
			return w
		}
		text, err := decode(data, m[1])
		if err != nil {
			return w
		}
		return text
	})
}

type part struct {
	head map[string]string
	body string
}

func parse(text string) part {
	top, body, _ := strings.Cut(text, "\n\n")
	if strings.HasPrefix(text, "\n") {
		top, body = "", text[1:]
	}
	p := part{map[string]string{}, body}
	top = strings.NewReplacer("\n ", " ", "\n\t", " ").Replace(top)
	for _, line := range strings.Split(top, "\n") {
		if k, v, ok := strings.Cut(line, ":"); ok {
			if k = strings.ToLower(strings.TrimSpace(k)); p.head[k] == "" {
				p.head[k] = strings.TrimSpace(v)
			}
		}
	}
	return p
}

func param(value, name string) string {
	m := regexp.MustCompile(`(?i);\s*` + name + `\s*=\s*(?:"([^"]*)"|([^;\s]+))`).FindStringSubmatch(value)
	if m == nil {
		return ""
	}
	return m[1] + m[2]
}

// plain finds the first text part that is no attachment.
func plain(p part) (string, bool, error) {
	kind := p.head["content-type"]
	media, _, _ := strings.Cut(strings.ToLower(kind), ";")
	if strings.HasPrefix(media, "multipart/") {
		pieces := strings.Split("\n"+p.body, "\n--"+param(kind, "boundary"))
		for _, piece := range pieces[1:] {
			if strings.HasPrefix(piece, "--") {
				break
			}
			_, piece, _ = strings.Cut(piece, "\n")
			if text, ok, err := plain(parse(piece)); ok || err != nil {
				return text, ok, err
			}
		}
		return "", false, nil
	}
	if media != "" && strings.TrimSpace(media) != "text/plain" || strings.HasPrefix(strings.ToLower(p.head["content-disposition"]), "attachment") {
		return "", false, nil
	}
	data := []byte(p.body)
	var err error
	switch strings.ToLower(p.head["content-transfer-encoding"]) {
	case "base64":
		data, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(p.body), ""))
	case "quoted-printable":
		data, err = io.ReadAll(quotedprintable.NewReader(strings.NewReader(p.body)))
	}
	if err != nil {
		return "", false, err
	}
	text, err := decode(data, param(kind, "charset"))
	return text, err == nil, err
}

func Run(call *recurgent.Call) (any, error) {
	data, err := call.ReadFile(call.Arg(0, "mail"))
	if err != nil {
		return nil, err
	}
	mail := parse(strings.ReplaceAll(string(data), "\r\n", "\n"))
	if mail.head["from"] == "" {
		return nil, recurgent.Fail("invalid_input", "the file is no mail: it has no sender")
	}
	text, ok, err := plain(mail)
	if err != nil {
		return nil, recurgent.Fail("invalid_input", err.Error())
	}
	if !ok {
		return nil, recurgent.Fail("invalid_input", "the mail has no text part")
	}
	from := header(mail.head["from"])
	if m := address.FindStringSubmatch(from); m != nil {
		from = m[1]
	}
	lines := []map[string]any{}
	for _, m := range item.FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return nil, recurgent.Fail("invalid_input", m[1]+" is too many")
		}
		lines = append(lines, map[string]any{"article": m[2], "count": n})
	}
	return map[string]any{"from": strings.TrimSpace(from), "subject": header(mail.head["subject"]), "lines": lines}, nil
}
