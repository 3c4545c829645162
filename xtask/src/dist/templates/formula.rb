class @CLASS@ < Formula
  desc "@DESCRIPTION@"
  homepage "@HOMEPAGE@"
  version "@VERSION@"
  license any_of: [@LICENCES@]

@PLATFORMS@

  def install
    bin.install "bin/@NAME@"
    bash_completion.install "share/bash-completion/completions/@NAME@"
    zsh_completion.install "share/zsh/site-functions/_@NAME@"
    fish_completion.install "share/fish/vendor_completions.d/@NAME@.fish"
    man1.install Dir["share/man/man1/*"]
    doc.install Dir["share/doc/@NAME@/*"]
  end

  service do
    run [opt_bin/"@NAME@", "serve"]
    keep_alive crashed: true
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/@NAME@ --version")
  end
end
