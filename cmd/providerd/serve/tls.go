package serve

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"example.com/providerd/cmd/providerd/console"
	"example.com/providerd/cmd/providerd/flags"
)

// reloadInterval is how long a certificate is used before its files are read again, so that no flood of handshakes
// reads them.
const reloadInterval = time.Second

// certificateFiles is a certificate that is read again as long as it is used.
type certificateFiles struct {
	certPath, keyPath string
	logger            *slog.Logger
	mutex             sync.Mutex
	certificate       *tls.Certificate
	// problem is why the files could not be used when they were read last, at readAt.
	problem string
	readAt  time.Time
}

// newTLSConfig reads the certificate. It returns nil, for plain HTTP, where no paths are given.
func newTLSConfig(certPath, keyPath string, logger *slog.Logger) (*tls.Config, error) {
	if certPath == "" {
		return nil, nil //nolint:nilnil // It is net/http's own sign for plain HTTP.
	}
	certificate, err := flags.LoadCertificate(certPath, keyPath)
	if err != nil {
		return nil, fmt.Errorf("%w: read the chain in %s and its key in %s: %w", console.ErrCertificate, certPath,
			keyPath, err)
	}
	files := &certificateFiles{
		certPath: certPath, keyPath: keyPath, logger: logger, certificate: &certificate, readAt: time.Now(),
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: files.current}, nil
}

// current returns the certificate of the files, or the last one that could be used: the files may be replaced one after
// the other, and for a moment not fit each other.
func (f *certificateFiles) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if time.Since(f.readAt) >= reloadInterval {
		f.reload()
		f.readAt = time.Now()
	}
	return f.certificate, nil
}

// reload reads the files, and says what has changed since they were read last.
func (f *certificateFiles) reload() {
	certificate, err := flags.LoadCertificate(f.certPath, f.keyPath)
	if err != nil {
		if problem := err.Error(); problem != f.problem {
			f.logger.Error("certificate cannot be used; the one of before stays", slog.String("error", problem))
			f.problem = problem
		}
		return
	}
	if f.problem != "" || !slices.EqualFunc(certificate.Certificate, f.certificate.Certificate, bytes.Equal) {
		f.logger.Info("certificate was read again", slog.String("path", f.certPath))
	}
	f.certificate, f.problem = &certificate, ""
}

// warnOfPlainHTTP says what to do where plain HTTP leaves this machine.
func warnOfPlainHTTP(log *serveLog, address net.Addr) {
	if tcp, ok := address.(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		return
	}
	log.say(slog.LevelWarn, fmt.Sprintf("tokens and secrets cross the network in clear text, because %s is not a "+
		"loopback address; give --tls-cert and --tls-key, or listen on 127.0.0.1 behind a proxy that speaks TLS", address))
}
