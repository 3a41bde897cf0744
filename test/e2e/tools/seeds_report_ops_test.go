//go:build ops

package tools

import (
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// In a browser, the evidence report draws the bars of every series that has a value, and is not wider than the window.
func TestOpsReportInABrowser(t *testing.T) {
	t.Parallel()
	_, page := reported(t)
	shot := filepath.Join(t.TempDir(), "report.png")
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "chromium", "--headless", "--no-sandbox", "--disable-gpu",
		"--disable-dev-shm-usage", "--hide-scrollbars", "--user-data-dir="+home,
		"--window-size=1000,2200", "--screenshot="+shot, "file://"+page)
	cmd.Env = append(os.Environ(), "HOME="+home)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("chromium: %v\n%s", err, out)
	}
	f, err := os.Open(shot)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	if out := os.Getenv("REPORT_SHOT"); out != "" { // to look at it
		if data, err := os.ReadFile(shot); err == nil {
			_ = os.WriteFile(out, data, 0o600)
		}
	}
	bars := map[color.RGBA]string{{9, 105, 218, 255}: "calls", {207, 34, 46, 255}: "errors",
		{191, 135, 0, 255}: "weak successes", {130, 80, 223, 255}: "corrections"}
	drawn := map[string]int{}
	b := img.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			r, g, bl, a := img.At(x, y).RGBA()
			if name := bars[color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(bl >> 8), uint8(a >> 8)}]; name != "" {
				drawn[name]++
			}
		}
	}
	for _, name := range bars {
		if drawn[name] < 150 { // the key has some, too
			t.Errorf("%d pixels of %s are drawn: %v", drawn[name], name, drawn)
		}
	}
	for y := b.Min.Y; y < b.Max.Y; y++ {
		if r, _, _, _ := img.At(b.Max.X-2, y).RGBA(); r>>8 != 255 {
			t.Fatalf("the page is wider than its window at line %d", y)
		}
	}
}
