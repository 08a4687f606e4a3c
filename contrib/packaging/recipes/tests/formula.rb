# Runs a formula on an unpacked archive without Homebrew: formula.rb FORMULA ARCHIVE-FOLDER PREFIX
#
# Of Homebrew, there is only what this formula calls: folders to install to, and what a test calls.
# It prints what the formula declares.
require "English"
require "fileutils"
require "pathname"

# A folder that files are installed to, under other names where a pair says so.
class Folder < Pathname
  def install(*files)
    mkpath
    files.flatten.each do |file|
      (file.is_a?(Hash) ? file.to_a : [[file, File.basename(file)]]).each do |from, to|
        raise "the formula installs #{from}, which is not in the archive" unless File.file?(from)

        FileUtils.cp(from, self + to, preserve: true)
      end
    end
    raise "the formula installs no files to #{self}" if files.flatten.empty?
  end
end

class Formula
  FOLDERS = {
    prefix: "", bin: "bin", man1: "share/man/man1", bash_completion: "etc/bash_completion.d",
    fish_completion: "share/fish/vendor_completions.d", zsh_completion: "share/zsh/site-functions"
  }.freeze
  # What the formula says of itself.
  DECLARED = Hash.new { |hash, name| hash[name] = [] }

  class << self
    %i[desc homepage url version sha256 license depends_on].each do |name|
      define_method(name) { |value = nil, **pairs| DECLARED[name] << (value || pairs) }
    end

    def test(&block)
      define_method(:test, &block)
    end
  end

  FOLDERS.each { |name, below| define_method(name) { Folder.new(File.join(@prefix, below)) } }

  def initialize(prefix)
    @prefix = prefix
  end

  def version
    DECLARED[:version].first
  end

  def shell_output(command)
    output = `#{command}`
    raise "#{command} failed" unless $CHILD_STATUS.success?

    output
  end

  def assert_equal(expected, got)
    raise "#{got.inspect} is not #{expected.inspect}" unless expected == got
  end

  def assert_match(expected, got)
    raise "#{got.inspect} does not have #{expected.inspect}" unless got.include?(expected)
  end
end

formula, archive, prefix = ARGV.map { |path| File.expand_path(path) }
load formula
formula = Xmem.new(prefix)
Dir.chdir(archive) { formula.install }
formula.test
%i[url version sha256].each { |name| puts "#{name} #{Formula::DECLARED[name].join}" }
