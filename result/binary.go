package result

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/text/base64text"
)

// A binary is the data of an image, audio or blob block.
type binary struct {
	base64   []byte // standard alphabet, with padding
	size     int    // bytes that it stands for
	mime     string // what it is
	declared string // what the server said, where that is not so
}

// readBinary reads base64 in the text of a block. Line breaks, the URL alphabet
// and missing padding are forgiven; anything else is not base64.
func readBinary(literal []byte, declared string) (binary, bool) {
	b := literal[1 : len(literal)-1]
	if bytes.IndexByte(b, '\\') >= 0 {
		b = appendDecoded(nil, literal)
	}
	b, ok := base64text.Canonical(b)
	if !ok {
		return binary{}, false
	}
	bin := binary{base64: b, size: base64.StdEncoding.DecodedLen(len(b)) - padding(b)}
	var head [48]byte
	n, _ := base64.StdEncoding.Decode(head[:], b[:min(len(b), 64)])
	bin.mime = mediaType(declared)
	if found := sniff(head[:n]); found != "" && found != bin.mime && !contains(found, bin.mime) {
		bin.mime, bin.declared = found, declared
	} else if found == "" && seen[bin.mime] {
		bin.mime, bin.declared = "application/octet-stream", declared
	}
	return bin, true
}

// described names binary data by its type and size, and what else there is to say.
func (bin *binary) described(more string) string {
	return "(" + bin.mime + ", " + strconv.Itoa(bin.size) + " bytes: " + more + ")"
}

func padding(b []byte) int {
	return len(b) - len(bytes.TrimRight(b, "="))
}

// seen are the image types that models take (OpenAI's guide on vision, 2026-11;
// the other providers take no more).
var seen = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

// magic are the first bytes of the formats that tools return.
var magic = []struct{ prefix, at8, mime string }{
	{"\x89PNG\r\n\x1a\n", "", "image/png"},
	{"\xff\xd8\xff", "", "image/jpeg"},
	{"GIF87a", "", "image/gif"},
	{"GIF89a", "", "image/gif"},
	{"RIFF", "WEBP", "image/webp"},
	{"RIFF", "WAVE", "audio/wav"},
	{"OggS", "", "audio/ogg"},
	{"ID3", "", "audio/mpeg"},
	{"fLaC", "", "audio/flac"},
	{"%PDF-", "", "application/pdf"},
	{"PK\x03\x04", "", "application/zip"},
	{"\x1f\x8b\x08", "", "application/gzip"},
}

// sniff returns the type that the first bytes tell, or "".
func sniff(head []byte) string {
	for _, m := range magic {
		if bytes.HasPrefix(head, []byte(m.prefix)) &&
			(m.at8 == "" || len(head) >= 12 && string(head[8:12]) == m.at8) {
			return m.mime
		}
	}
	return ""
}

// contains reports whether files of the declared type are files of the found
// one inside, as an office document is a zip archive.
func contains(found, declared string) bool {
	switch found {
	case "application/zip", "application/gzip", "audio/ogg":
		return declared != "" && !seen[declared] && declared != "application/pdf"
	}
	return false
}

// mediaType brings a MIME type into its usual spelling.
func mediaType(s string) string {
	s, _, _ = strings.Cut(s, ";")
	switch s = strings.ToLower(strings.TrimSpace(s)); s {
	case "image/jpg", "image/pjpeg":
		return "image/jpeg"
	case "image/x-png":
		return "image/png"
	case "audio/x-wav", "audio/wave", "audio/vnd.wave":
		return "audio/wav"
	case "audio/mp3", "audio/x-mp3", "audio/x-mpeg":
		return "audio/mpeg"
	case "audio/x-flac":
		return "audio/flac"
	case "application/x-gzip":
		return "application/gzip"
	case "":
		return "application/octet-stream"
	}
	return s
}

// format is the word that names a MIME type in {format}_base64.
func format(mime string) string {
	_, s, _ := strings.Cut(mime, "/")
	s, _, _ = strings.Cut(strings.TrimPrefix(s, "x-"), "+")
	word := []byte(s)
	for i, c := range word {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			word[i] = '_'
		}
	}
	if len(word) == 0 || mime == "application/octet-stream" {
		return "data"
	}
	return string(word[:min(len(word), 40)])
}
