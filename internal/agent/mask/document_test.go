package mask_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent/mask"
)

func document(first, last string) (string, string) {
	return rules().Until(context.Background()).Document(first, last)
}

// Cells in the columns of secrets are masked, whatever separates them.
func TestTables(t *testing.T) {
	t.Parallel()
	const m = "[masked]"
	for _, tt := range []struct{ text, want string }{
		{"user;password;note\nann;geheim123;x\nbob;topsecret9;y\n",
			"user;password;note\nann;" + m + ";x\nbob;" + m + ";y\n"},
		{"user,password\r\nann,geheim123\r\n", "user,password\r\nann," + m + "\r\n"},
		{"user\tAPI key\nann\tgeheim123\n", "user\tAPI key\nann\t" + m + "\n"},
		{"| user | Password |\n|---|---|\n| ann | geheim123 |\n",
			"| user | Password |\n|---|" + m + "|\n| ann | " + m + " |\n"},
		{"user  password\nann   geheim123\n", "user  password\nann   " + m + "\n"},
		{"user^password\nann^geheim123\n", "user^password\nann^" + m + "\n"},
		{"user:password:uid\nann:geheim123:7\n", "user:password:" + m + "\nann:" + m + ":7\n"},
		{"\"user\";\"password\"\n\"ann\";\"ge\"\"heim;1\n2\"\n\"bob\";\"x\"\n",
			"\"user\";\"password\"\n\"ann\";\"" + m + "\"\n\"bob\";\"" + m + "\"\n"},
		{"sep=;\npassword;user\nhunter;ann\n", "sep=;\npassword;user\n" + m + ";ann\n"},
		{"Export, 2026\n\nuser;password\nann;geheim123\n", "Export, 2026\n\nuser;password\nann;" + m + "\n"},
		{"Liste; aller\nuser;password\nann;geheim123\n", "Liste; aller\nuser;password\nann;" + m + "\n"},
		{"password;\"user\nname\"\nhunter;ann\n", "password;\"user\nname\"\n" + m + ";ann\n"},
		{"password\nhunter\nhunter 3\n", "password\n" + m + "\n" + m + "\n"},
		{"setting;value\npassword;hunter\nuser;ann\n", "setting;value\npassword;" + m + "\nuser;ann\n"},
		{"password;hunter2\nuser;ann\n", "password;" + m + "\nuser;ann\n"},
		{"key;value\na;9fQ2xLm4Zt7Rb1Kc\n9fQ2xLm4Zt7Rb1Kc;b\n", "key;value\na;9fQ2xLm4Zt7Rb1Kc\n" + m + ";b\n"},
		{"[\"user\", \"password\"],\n[\"ann\", \"geheim123\"]\n",
			"[\"user\", \"password\"],\n[\"ann\", \"" + m + "\"]\n"},
		{"user;password;note\n;;\nann;null;x\nann;;x\n", "user;password;note\n;;\nann;null;x\nann;;x\n"},
		// rows that cannot be read as a whole
		{"user;password;note\nann;gehe;im;x\nge;heim\nbob;y", "user;password;note\n" + m + "\n" + m + "\n" + m},
		{"user;password\nann;\"gehe\nim", "user;password\n" + m},
		// no table of secrets
		{"user;tokens\nann;5\n", "user;tokens\nann;5\n"},
		{"event;type\nlogin;ok\n", "event;type\nlogin;ok\n"},
		{"Dear Sir,\nthe password, as you know, is long.\nReset it, please\n",
			"Dear Sir,\nthe password, as you know, is long.\nReset it, please\n"},
		{"Kunde;Umsatz\nMüller;5\n\nSumme;5\n", "Kunde;Umsatz\nMüller;5\n\nSumme;5\n"},
		{"type: token\nname: x\n", "type: token\nname: x\n"},
	} {
		if got, _ := document(tt.text, ""); got != tt.want {
			t.Errorf("%q became %q, want %q", tt.text, got, tt.want)
		}
	}
}

// The end of a table has the columns of its beginning.
func TestEndOfTable(t *testing.T) {
	t.Parallel()
	_, got := document("user;password\nann;geheim123\n",
		"heim4\nbob;geheim5\ncy;\"gehe\nim6\"\ndan;\"geheim7\"\nSumme\n")
	if want := "[masked]\nbob;[masked]\n[masked]\n[masked]\"\ndan;\"[masked]\"\n[masked]\n"; got != want {
		t.Errorf("the end became %q, want %q", got, want)
	}
	_, got = document("<users>\n<user>", "heim4</password></user><user><password>geheim5</password></user></users>")
	if want := "[masked]</password></user><user><password>[masked]</password></user></users>"; got != want {
		t.Errorf("the end became %q, want %q", got, want)
	}
}

// Elements and attributes are masked by the same names as members of JSON.
func TestElements(t *testing.T) {
	t.Parallel()
	const m = "[masked]"
	for _, tt := range []struct{ text, want string }{
		{"<c><password>geheim123</password><token value='tok123456'/></c>",
			"<c><password>" + m + "</password><token value='" + m + "'/></c>"},
		{"<c><x:dbPassword kind=\"a\">ge&amp;heim</x:dbPassword>\n<user>ann</user></c>",
			"<c><x:dbPassword kind=\"" + m + "\">" + m + "</x:dbPassword>\n<user>ann</user></c>"},
		{"<credentials><user>ann</user><credentials>x</credentials>y</credentials><a>b</a>",
			"<credentials>" + m + "</credentials><a>b</a>"},
		{"<password><![CDATA[<b>x]]></password>", "<password>" + m + "</password>"},
		{"<add key=\"DbPassword\" value=\"geheim123\" /><add key=\"Ort\" value=\"Köln\"/>",
			"<add key=\"DbPassword\" value=\"" + m + "\" /><add key=\"Ort\" value=\"Köln\"/>"},
		{"<input type=password name=password value=geheim123><p>text</p>",
			"<input type=password name=password value=" + m + "><p>text</p>"},
		{"<entry key='password'>geheim123</entry><entry key='user'>ann</entry>",
			"<entry key='password'>" + m + "</entry><entry key='user'>ann</entry>"},
		{"<span id=\"token\">abc</span><b>c</b>", "<span id=\"token\">" + m + "</span><b>c</b>"},
		{"<dict><key>password</key>\n<string>geheim123</string><key>user</key><string>ann</string></dict>",
			"<dict><key>password</key>\n<string>" + m + "</string><key>user</key><string>ann</string></dict>"},
		{"<!-- <Password>geheim123</Password> -->", "<!-- <Password>" + m + "</Password> -->"},
		{"<user api_key='geheim123'>ann</user>", "<user api_key='" + m + "'>ann</user>"},
		{"<signature>9fQ2xLm4Zt7Rb1Kc</signature><key>price</key>", "<signature>" + m + "</signature><key>price</key>"},
		{"<c><password>gehe", "<c><password>" + m},
		{"<c><token value=\"gehe", "<c><token value=\"" + m},
		{"<password>true</password><password/><tokens>5</tokens><Ntry><Amt Ccy=\"EUR\">1</Amt></Ntry>",
			"<password>true</password><password/><tokens>5</tokens><Ntry><Amt Ccy=\"EUR\">1</Amt></Ntry>"},
		{"a < b, b <= c, <token", "a < b, b <= c, <token"},
	} {
		if got, _ := document(tt.text, ""); got != tt.want {
			t.Errorf("%q became %q, want %q", tt.text, got, tt.want)
		}
	}
}

// Without rules nothing is masked; once the context has ended, everything is.
func TestDocumentBounds(t *testing.T) {
	t.Parallel()
	const text = "user;password\nann;geheim123\n"
	if got, _ := mask.Compile(nil).Until(context.Background()).Document(text, ""); got != text {
		t.Errorf("without rules it became %q", got)
	}
	ctx, end := context.WithDeadline(context.Background(), time.Time{})
	defer end()
	long := text + strings.Repeat("ann;geheim123\n", 10_000)
	if got, _ := rules().Until(ctx).Document(long, ""); got != mask.Masked {
		t.Errorf("an ended pass left %.80q", got)
	}
}
