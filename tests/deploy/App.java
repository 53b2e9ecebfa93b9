import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.zip.CRC32;
import java.util.zip.Deflater;

/** Direct buffers and zlib, whose memory comes from malloc; that of Java's own heap does not. Then waits until its input ends. */
class App {
    public static void main(String[] arguments) throws Exception {
        ArrayDeque<ByteBuffer> kept = new ArrayDeque<>();
        CRC32 sum = new CRC32();
        for (int n = 0; n < 20000; n++) {
            ByteBuffer made = ByteBuffer.allocateDirect(600 + n * 7 % 4400);
            made.putInt(0, n);
            sum.update(made.getInt(0) & 255);
            kept.add(made);
            if (kept.size() > 2000) {
                kept.remove();
            }
            if (n % 100 == 0) {
                Deflater deflater = new Deflater();
                deflater.setInput(new byte[5000]);
                deflater.finish();
                sum.update(deflater.deflate(new byte[6000]));
                deflater.end();
            }
        }
        System.out.println(Long.toHexString(sum.getValue()));
        System.in.read();
    }
}
