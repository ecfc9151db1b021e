package result

// What goes along with one message at most. OpenAI takes 20 MB for an image
// (guide on vision, 2026-11); the others take less and say so.
const (
	maxImage  = 20 << 20 // bytes
	maxImages = 16
)

// An Image is a picture of a result, for models that see.
type Image struct {
	// MIMEType is what the bytes are: image/png, image/jpeg, image/gif or
	// image/webp.
	MIMEType string
	// Base64 holds the bytes in standard base64 with padding.
	Base64 string
}

// URL returns the image as a data URL, the form in which both OpenAI APIs take
// it.
func (i Image) URL() string { return "data:" + i.MIMEType + ";base64," + i.Base64 }
