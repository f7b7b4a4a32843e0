package inspect

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"fmt"
	"net/http"
	"path"
	"time"
)

//go:embed static
var files embed.FS

// mediaTypes are by extension. The other files are texts, such as licences.
var mediaTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// static answers with a file of the directory static.
func static(w http.ResponseWriter, r *http.Request, name string) error {
	data, err := files.ReadFile("static/" + name) // it refuses paths with .. and empty elements
	if err != nil {
		return notFound("there is no such file")
	}
	h := w.Header()
	h.Set("Content-Type", cmp.Or(mediaTypes[path.Ext(name)], "text/plain; charset=utf-8"))
	h.Set("Cache-Control", "no-cache") // a browser keeps the file, and compares its ETag
	h.Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(data)))
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(data))
	return nil
}
